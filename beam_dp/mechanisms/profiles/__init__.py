"""Removal profiles: what remains of a statistic without k people, exact or a proved relaxation."""
