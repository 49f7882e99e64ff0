"""What private draws cost: the exact laws of what is drawn, on two databases. No Beam is needed."""
