"""What one worker can take of one partition: rows, by what is computed from them, and removals.

Rows of the same person with the same value are one line.
"""

LINES = 50_000_000
"""What is sorted: memory sets the limit, 150 to 270 bytes for each line."""

VALUES = 6_000_000
"""What is solved, from people to values: time sets the limit, about a minute for a flow."""

PROGRAM = 1_000_000
"""What is a linear program: 6 million lines took seconds where people own few values, 180,000 a
minute, which are half of all pairs of 600 people and 600 values."""

EDGES = 10_000_000
"""What is solved as a flow between two owners of every row."""

REMOVALS = 2_000_000
"""K: how many people a search may look at. A profile of so many takes some 100 MB and seconds."""
