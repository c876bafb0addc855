"""Beside the lab, and needed by nothing else: synthetic data, and a page to play with."""
