"""Removal profiles of statistics, exact or proved relaxations: what remains after removals."""
