"""gRPC: servicers, translation between protos and the domain, and the table of status codes."""
