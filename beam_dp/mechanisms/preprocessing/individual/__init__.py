"""Preprocessing in which each person has their own Delta."""
