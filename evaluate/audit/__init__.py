"""What a shift would change in an index, by a sample of its documents."""
