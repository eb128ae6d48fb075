"""The commands, one module a subject; they alone see every room."""
