"""File formats: how the bytes of one file become rows. Nothing read is ever put into a message."""
