"""The versions that there are: listed, described, dropped."""
