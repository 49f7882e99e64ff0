"""SQL over rows of people, over one row at a time, and over what was released."""
