"""langshift: language-fair vector search on OpenSearch."""

from importlib.metadata import version

__version__ = version("langshift")
