"""The web pages: search side by side, indices, the language map, evaluations."""
