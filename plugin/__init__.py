"""What lives in the cluster: index bodies, metadata, versions, pipelines, and the transfer between versions."""
