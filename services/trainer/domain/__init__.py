"""Pure rules and values of training: what is split, ordered, settled and stopped. No I/O, clock or global randomness.

Values that the services exchange have the names they have there. JSON texts stay texts; enums are lower-case names
such as `diag` or `both_right`; None is "not recorded".
"""
