"""The web pages: search side by side, indices, evaluations."""
