"""What the layers compute, as pure functions on plain tensors.

A layer is three steps: `space_points` and `group_points` say where the kernel is read for every output element h,
`sample` evaluates the spline basis there, and `lift` or `correlate` applies the kernel that coefficients make of it.
"""

from .correlation import correlate, lift, project
from .regular import left_regular
from .sampling import (
    Size,
    Window,
    axial,
    directions,
    group_points,
    group_samples,
    in_window,
    sample,
    space_points,
    space_samples,
    window,
)

__all__ = [
    "Size",
    "Window",
    "axial",
    "correlate",
    "directions",
    "group_points",
    "group_samples",
    "in_window",
    "left_regular",
    "lift",
    "project",
    "sample",
    "space_points",
    "space_samples",
    "window",
]
