"""The gate's ports on real technology."""
