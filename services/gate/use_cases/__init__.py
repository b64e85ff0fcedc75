"""What the gate does, one file per thing, over the ports it needs."""
