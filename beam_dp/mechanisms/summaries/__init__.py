"""Summaries of a partition's rows, which releases are computed from: histograms, owner lines."""
