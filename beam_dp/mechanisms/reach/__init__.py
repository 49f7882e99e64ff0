"""How many partitions a person may reach, chosen privately: one noisy histogram of people."""
