"""Beside the lab, and needed by nothing else: the paper's figures, synthetic data, and a page to play with."""
