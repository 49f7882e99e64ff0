"""Tables that agree: totals equal their parts, from released numbers alone, so at no cost."""
