"""Scores of a trained network, its equivariance, and its predictions for new images."""
