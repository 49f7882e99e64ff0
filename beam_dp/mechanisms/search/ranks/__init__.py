"""Quantiles by ranks, with an answer for too few people; see `central`, `tail` and `splitting`."""
