"""Searches of the literature that a user can ask for."""
