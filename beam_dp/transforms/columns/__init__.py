"""Turn rows of any kind into columns of integers: values, ids, keys, orders."""
