"""The report of a run: one HTML file with drawings of its own."""
