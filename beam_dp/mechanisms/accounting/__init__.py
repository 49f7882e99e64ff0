"""Budgets, the ledger of what is spent, and the conversions of zCDP."""
