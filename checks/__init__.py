"""What `make check` looks at beyond the ready-made linters."""
