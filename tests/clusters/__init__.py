"""Real clusters of Flink and of Spark on this machine, started for one command and stopped after it."""
