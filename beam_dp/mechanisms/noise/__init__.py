"""Noise: exact samplers, tail bounds, and the releases that need nothing but noise."""
