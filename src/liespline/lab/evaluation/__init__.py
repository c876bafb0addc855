"""What a trained network is worth, and its answers for new images."""
