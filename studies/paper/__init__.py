"""The paper: its two experiments (section 4), its claims, and what our runs say of them."""

RECIPE = {"epochs": 100, "optimiser": "sgd", "smoothness": 0.0, "lr": 0.01, "weight_decay": 5e-4}
"""What both have in common."""
