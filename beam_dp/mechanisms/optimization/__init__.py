"""Maximum flows, one linear program with its certificates, and its solvers."""
