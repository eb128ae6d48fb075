"""The bulk engine: documents in, each of them on the server or in the dead letters."""
