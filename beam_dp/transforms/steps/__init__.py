"""The steps between rows and released numbers: collect, settle, draw, store, show."""
