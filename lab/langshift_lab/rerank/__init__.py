"""Training rerankers, and what they are worth."""
