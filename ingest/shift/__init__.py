"""The shift of an index and its way back, in NumPy."""
