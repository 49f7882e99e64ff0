"""What is read: tables of this process and released files, and how far a job has come with it."""
