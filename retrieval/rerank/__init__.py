"""Reranking: what a search found is put in a better order by a model, at query time."""
