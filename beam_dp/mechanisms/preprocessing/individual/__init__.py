"""Preprocessing with a Delta of their own for each person."""
