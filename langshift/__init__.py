"""langshift: language-fair vector search on OpenSearch."""

import logging
from importlib.metadata import version

__version__ = version("langshift")

# As a library should: without a log, Python would print its warnings and errors.
logging.getLogger("langshift").addHandler(logging.NullHandler())
