"""Making a new version of a live one inside the cluster, while people search and write."""
