"""Datasets in BEIR's layout: read, and checked."""
