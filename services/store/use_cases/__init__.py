"""What the store does, one thing a file, and the ports it needs."""
