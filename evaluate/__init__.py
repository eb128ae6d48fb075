"""What proves it: datasets, replay against a live cluster, measures, and the demo."""
