"""What a shift would change in an index that somebody has already."""
