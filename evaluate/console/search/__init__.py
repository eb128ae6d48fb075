"""The page of searching side by side, and why a hit is where it is."""
