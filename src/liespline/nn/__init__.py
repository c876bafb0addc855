"""Layers on `(B, C, N_h, *space)` feature maps: the paper's three, and what torch.nn lacks for such tensors."""

from .centre import Centre
from .dropout import FieldDropout
from .ensemble import Ensemble
from .frame import FrameBias, InFrame, in_frame
from .group_norm import ChannelNorm, GroupNorm, InstanceNorm, LayerNorm
from .irreps import FromIrreps, ToIrreps
from .layers import GConv, Lift, Project
from .norm import BatchNorm, NormAct, NormReLU
from .oversampled import Oversampled
from .pool import MaxPool
from .resample import Downsample, Upsample
from .restrict import Restrict
from .separable import Depthwise, SeparableGConv, redraw
from .shift import GridAverage, shift

__all__ = [
    "BatchNorm",
    "Centre",
    "ChannelNorm",
    "Depthwise",
    "Downsample",
    "Ensemble",
    "FieldDropout",
    "FrameBias",
    "FromIrreps",
    "GConv",
    "GridAverage",
    "GroupNorm",
    "InFrame",
    "InstanceNorm",
    "LayerNorm",
    "Lift",
    "MaxPool",
    "NormAct",
    "NormReLU",
    "Oversampled",
    "Project",
    "Restrict",
    "SeparableGConv",
    "ToIrreps",
    "Upsample",
    "in_frame",
    "redraw",
    "shift",
]
