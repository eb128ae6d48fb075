"""From a query to hits: the search modes, their requests, and the Python API."""
