"""What is kept of the rows of a partition: histograms and lines by owner."""
