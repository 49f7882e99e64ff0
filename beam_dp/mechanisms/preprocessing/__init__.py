"""Cummings and Durfee's preprocessing: g, the function near f that no person moves beyond Delta.

`groups` gives g of usual statistics exactly on a grid of integers: only that is released.
"""
