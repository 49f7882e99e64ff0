"""The statistics that a user can ask for, one file per family."""
