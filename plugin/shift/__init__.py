"""The shift of an index, as the cluster does it itself: script, vectors, stamps."""
