"""Published collections made into dataset folders: one module a format."""
