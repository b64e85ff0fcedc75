"""The trainer's ports on real technology: gRPC clients, child processes, report pages."""
