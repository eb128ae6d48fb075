"""Fitting language vectors on parallel text, and what the text says of their reliability."""
