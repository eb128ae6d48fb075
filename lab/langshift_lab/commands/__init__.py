"""The commands of the laboratory: ``langshift`` finds them by the entry points in lab/pyproject.toml."""
