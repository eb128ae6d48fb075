"""Figures as SVG: of reports, and of the console."""
