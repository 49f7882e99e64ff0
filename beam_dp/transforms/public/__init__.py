"""Public partitions: a list of keys, from values, a product, a file or a collection."""
