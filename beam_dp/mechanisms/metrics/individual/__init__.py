"""Metrics in which each person has an epsilon of their own."""
