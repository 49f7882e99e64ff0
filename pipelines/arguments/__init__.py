"""The command line that the jobs share: one module per group of options."""
