"""Checks of parameters, exact integers and intervals, keyed hashes, users' functions."""
