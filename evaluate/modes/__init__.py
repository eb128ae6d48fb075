"""Search modes side by side: every setting replayed against the same indices, in one table."""
