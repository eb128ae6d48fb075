"""Runs of one dataset compared: who gains, who loses, and whether chance could have done it."""
