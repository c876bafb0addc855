"""Layers on `(B, C, N_h, *space)` feature maps: the paper's three, and what torch.nn lacks for such tensors."""

from .centre import Centre
from .layers import GConv, Lift, Project
from .norm import BatchNorm, NormReLU
from .pool import Downsample, MaxPool, Upsample

__all__ = ["BatchNorm", "Centre", "Downsample", "GConv", "Lift", "MaxPool", "NormReLU", "Project", "Upsample"]
