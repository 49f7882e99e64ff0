"""Clips: what is large, seen by one noisy histogram, and what people above it lose."""
