"""Values and rules of governed model calls; no I/O, no clock, no global randomness."""
