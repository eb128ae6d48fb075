"""Taking over an index that somebody else has made: read, shifted, and written as a version of langshift's own."""
