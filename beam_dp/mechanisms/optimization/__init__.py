"""Maximum flows, and the linear program of the most frequent item with proofs and solvers."""
