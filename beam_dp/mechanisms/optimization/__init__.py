"""Packings of rows: linear programs with their solvers, and proofs in integers."""
