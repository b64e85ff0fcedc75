"""Pure part of the simulator: what its models answer, and which faults they suffer. No I/O, no clock."""
