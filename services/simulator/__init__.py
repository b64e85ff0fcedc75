"""An OpenAI-compatible HTTP server whose models read the prompts they are sent; see `examples/sample/README.md`."""
