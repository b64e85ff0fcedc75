"""Generated from protos/; never edited by hand."""
