"""The simulator's HTTP edge: routes, and the delivery of answers with or without faults."""
