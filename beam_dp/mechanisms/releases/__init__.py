"""Releases: the mechanisms that turn the view of the partitions into released numbers."""
