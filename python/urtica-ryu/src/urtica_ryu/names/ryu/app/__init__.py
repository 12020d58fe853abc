"""Applications to derive from."""
