"""What makes a pipeline of many steps quick to build."""
