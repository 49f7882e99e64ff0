"""Fractional packings of rows with several owners: proposals in floats, bounds in integers."""
