"""Read and write files. No content of a file ever gets into a message."""
