"""The commands retune and rollback, and the gate before a new version goes live."""
