"""Layers on `(B, C, N_h, *space)` feature maps: the paper's three, and what torch.nn lacks for such tensors."""

from .dropout import FieldDropout
from .layers import GConv, Lift, Project
from .norm import BatchNorm, NormReLU
from .pool import MaxPool
from .resample import Downsample, Upsample

__all__ = ["BatchNorm", "Downsample", "FieldDropout", "GConv", "Lift", "MaxPool", "NormReLU", "Project", "Upsample"]
