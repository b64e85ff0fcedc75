"""The store: the only process that touches the data root."""
