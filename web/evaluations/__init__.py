"""Runs, their reports, and the judging of two of them side by side."""
