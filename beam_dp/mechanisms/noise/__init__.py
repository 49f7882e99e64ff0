"""Exact samplers of noise, its tails, and what is released by noise alone."""
