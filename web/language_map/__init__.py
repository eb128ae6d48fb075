"""How near the languages of an index are to each other."""
