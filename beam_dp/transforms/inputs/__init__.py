"""What is read: which columns of which data, and how far a job has come with it."""
