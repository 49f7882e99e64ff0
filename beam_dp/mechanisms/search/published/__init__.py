"""Searches of the literature that a user can ask for; `auto` knows all but `UnboundedSearch`."""
