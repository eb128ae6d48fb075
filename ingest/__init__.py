"""What turns documents into index entries: read, detect, encode, shift, write."""
