"""What several runs cost together: the ledger, its file, and the lines in it."""
