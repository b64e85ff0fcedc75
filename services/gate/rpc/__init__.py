"""The gate on the wire: translation, servicer and the table of status codes."""
