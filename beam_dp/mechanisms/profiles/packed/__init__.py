"""Statistics of rows with any number of owners, by packings at thresholds."""
