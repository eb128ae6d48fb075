"""The same evaluation without a cluster: exact cosine in NumPy, from one encoding."""
