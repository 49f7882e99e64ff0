"""Every claim of speed and accuracy, each printed as a table by one command."""
