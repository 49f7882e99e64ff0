"""Distinct values of rows with any number of owners, by prices of a removal."""
