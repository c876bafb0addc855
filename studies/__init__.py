"""What is not installed: the paper's experiments, its figures, and data in official formats, real and drawn."""
