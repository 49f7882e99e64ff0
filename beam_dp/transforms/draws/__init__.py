"""Draws that last: what was drawn is kept in a folder before anything reads it."""
