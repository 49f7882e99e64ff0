"""Numbers that add up over people: what a person adds, how it is clipped, how noise is drawn."""
