"""Metrics that are quotients of what other metrics release too."""
