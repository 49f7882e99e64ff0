"""Plan a run: from metrics and a budget to a program of releases and their costs."""
