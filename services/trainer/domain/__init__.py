"""Pure rules of training: what is split, ordered, settled and stopped. No I/O, clock or global randomness."""
