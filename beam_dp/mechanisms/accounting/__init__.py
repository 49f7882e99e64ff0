"""Budgets, the account of what is spent, and the conversions of zCDP."""
