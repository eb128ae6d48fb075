"""Loads by several workers, on one machine or many, each of which writes parts of the same load."""
