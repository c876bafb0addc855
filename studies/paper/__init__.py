"""The paper: its claims and what our runs say of them."""
