"""From metrics and a budget to what a run must know and spend."""
