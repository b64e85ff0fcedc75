"""What the inference service does, one file each; `ports.py` names what it needs from outside."""
