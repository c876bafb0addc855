"""B-spline group-equivariant CNNs for any Lie group, on plain PyTorch tensors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from . import functional as functional
    from . import models as models
    from . import nn as nn
    from . import optim as optim
    from . import testing as testing
    from ._convert import convert
    from ._export import export
    from .grids import Grid, disc, lattice, local, repulsion, uniform
    from .groups import GL2, O2, O3, SO2, SO3, Axial, Group, MatrixGroup, Product, Scale, Sphere, Translation, Trivial
    from .lab.runs.trained import Trained
    from .nn import GConv, Lift, Project
    from .splines import SplineBasis, bspline

_HOMES = {
    "_convert": ("convert",),
    "_export": ("export",),
    "grids": ("Grid", "disc", "lattice", "local", "repulsion", "uniform"),
    "groups": ("GL2", "O2", "O3", "SO2", "SO3", "Axial", "Group", "MatrixGroup", "Product", "Scale", "Sphere",
               "Translation", "Trivial"),
    "nn": ("GConv", "Lift", "Project"),
    "splines": ("SplineBasis", "bspline"),
}  # fmt: skip
_MODULES = ("functional", "grids", "groups", "models", "nn", "optim", "ops", "splines", "testing")

__all__ = [  # no submodules: `from liespline import *` would put our `nn` where torch's was
    "GL2", "O2", "O3", "SO2", "SO3", "Axial", "GConv", "Grid", "Group", "Lift", "MatrixGroup", "Product", "Project",
    "Scale", "Sphere", "SplineBasis", "Translation", "Trivial", "bspline", "convert", "disc", "export", "lattice",
    "load", "local", "repulsion", "uniform",
]  # fmt: skip
__version__ = "0.3.0"


def load(run: str | Path, device: str | torch.device = "cpu") -> Trained:
    """Return a trained network from the folder of its run or from its `model.safetensors` (needs the extra `lab`).

    Or from `"zoo:NAME"`, which comes with liespline, or OWNER/NAME on the Hugging Face Hub (needs the extra `hub`).
    It is an `nn.Module`: `net(images)` gives logits, `net.probabilities(images)` probabilities,
    `net.in_tiles(images)` maps of images of any size.
    """
    from .lab.runs.trained import load as load_trained  # only now: the lab takes seconds to import

    return load_trained(run, device)


def __getattr__(name: str) -> object:
    """Import a name when it is first used (PEP 562): torch takes seconds, and `liespline --help` needs none of it."""
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(importlib.import_module(f".{home}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
