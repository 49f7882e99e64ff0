"""Jobs: options, read, public transforms, write."""
