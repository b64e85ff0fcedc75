"""One file per thing the trainer does, over the ports in `ports.py`."""
