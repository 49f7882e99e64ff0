"""Interior points of removal programs with many groups: proposals in floats."""
