"""The HTTP interface: searches, embeddings and reranking for programs, beside the pages of the console."""
