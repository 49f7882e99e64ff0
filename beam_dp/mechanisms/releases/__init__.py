"""The mechanisms that turn the view on the partitions into released numbers."""
