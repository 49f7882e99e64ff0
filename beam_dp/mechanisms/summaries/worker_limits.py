"""The most that is computed for one row, and by one worker for one partition: lines and removals.

Rows of the same person with the same value are one line.
"""

LINES = 50_000_000
"""Lines that are sorted: memory sets the limit, 150 to 270 bytes per line."""

VALUES = 6_000_000
"""Lines of a flow from people to values: time sets the limit, about a minute."""

EDGES = 10_000_000
"""Lines of a packing of rows with several owners."""

OWNERS = 8
"""Owners of a row."""

REMOVALS = 2_000_000
"""K, the most removals that a search may look at. A profile of so many takes some 100 MB and
seconds."""
