"""The trainer: the client that drives the four services through a training run, and the `videotree` command."""
