"""Contribution bounding: the bounds of one person, the table of rows, and how it is cut."""
