"""Cummings and Durfee's preprocessing: g, the function near f that no person moves beyond Delta.

`few_people` gives g of any function of few people, exactly. `groups` gives g of usual statistics
exactly on a grid of integers: only that is released.
"""
