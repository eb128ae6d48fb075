"""Searching: what is asked of the cluster in each mode, and how its answers become one ranking; nothing here sends."""
