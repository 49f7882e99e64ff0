"""The steps from rows to released numbers: collect, settle, draw, barrier, output rows."""
