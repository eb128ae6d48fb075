"""A test set from an index's own documents, as PosIR makes one: questions by a chat model, checked by a reranker."""
