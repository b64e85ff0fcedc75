"""The simulator's files: the world and its answers."""
