"""The public outputs that a search chooses from: their grids and defaults."""
