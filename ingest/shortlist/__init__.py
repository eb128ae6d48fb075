"""The candidates of every language, fetched once and ranked in any setting, at any alpha."""
