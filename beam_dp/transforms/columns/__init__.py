"""Rows of any kind become columns of integers: values, ids, keys, orders."""
