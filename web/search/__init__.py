"""Two indices or settings searched side by side."""
