"""What a pipeline is warned of, or refused, for what it is and where it runs."""
