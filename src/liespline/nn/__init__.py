"""Layers on `(B, C, N_h, *space)` feature maps."""

from .layers import GConv, Lift, Project

__all__ = ["GConv", "Lift", "Project"]
