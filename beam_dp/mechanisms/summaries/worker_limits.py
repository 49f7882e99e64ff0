"""The most that is computed for one row, and by one worker for one partition."""

OWNERS = 8
"""Owners of a row."""

REMOVALS = 2_000_000
"""K, the most removals that a search may look at. A profile of so many takes some 100 MB and
seconds."""
