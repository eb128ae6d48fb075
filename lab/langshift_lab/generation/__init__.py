"""Answers that a model generates from what a search found, and what they are worth."""
