"""Queries replayed against the live cluster, under load where that is asked for."""
