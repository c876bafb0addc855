"""The paper's two experiments (section 4)."""

RECIPE = {"epochs": 100, "optimiser": "sgd", "lr": 0.01, "decay": 5e-4}
"""What both have in common."""
