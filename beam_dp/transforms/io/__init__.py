"""Files in and out. Nothing read is ever put into a message."""
