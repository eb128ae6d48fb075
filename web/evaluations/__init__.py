"""Replays started and watched, runs and their reports."""
