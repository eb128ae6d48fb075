"""What lives in the cluster: index template, fingerprint, versions and aliases, query building."""
