"""The gate's rules: pure values and functions, no I/O, no clock, no global randomness."""
