"""What people read on a terminal: plans, and tables of words."""
