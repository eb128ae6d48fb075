"""The page of languages: how near those of queries and documents are."""
