"""What proves it: datasets, replay against a live cluster, measures, comparison and report."""
