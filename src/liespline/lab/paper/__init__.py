"""Sweeps over the networks of the paper: averages over seeds, and the paper's findings."""
