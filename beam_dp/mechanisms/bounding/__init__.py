"""What one person may contribute: bounds, the table of rows, and what cuts it."""
