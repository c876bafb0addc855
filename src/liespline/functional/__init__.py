"""What the layers compute, as pure functions on plain tensors.

A layer is three steps: `space_points` and `group_points` say where the kernel is read for every output element h,
`sample` evaluates the spline basis there, and `lift` or `correlate` applies the kernel that coefficients make of it.
"""

from .. import _compiling
from ..ops.correlate.reference import kernel, lift_kernel
from .bispectrum import bispectrum, fourier_rows, per_channel
from .border import Padding, disc_pad
from .correlation import against, correlate, lift, plan, project
from .depthwise import depthwise, depthwise_kernel
from .directions import directions, frames
from .ends import renormalised, replicated
from .interpolation import interpolation, over_h
from .irreps import irreps, wigner
from .regular import left_regular
from .sampling import (
    Window,
    group_points,
    group_samples,
    harmonics,
    in_window,
    sample,
    space_points,
    space_samples,
    window,
)

__all__ = [
    "Padding",
    "Window",
    "against",
    "bispectrum",
    "correlate",
    "depthwise",
    "depthwise_kernel",
    "directions",
    "disc_pad",
    "fourier_rows",
    "frames",
    "group_points",
    "group_samples",
    "harmonics",
    "in_window",
    "interpolation",
    "irreps",
    "kernel",
    "left_regular",
    "lift",
    "lift_kernel",
    "over_h",
    "per_channel",
    "plan",
    "project",
    "renormalised",
    "replicated",
    "sample",
    "space_points",
    "space_samples",
    "wigner",
    "window",
]

_compiling.without_gaps()
