"""Quantiles by ranks: in the middle, near an end, several; with an answer for too few people."""
