"""The console in the browser: ``langshift serve``."""
