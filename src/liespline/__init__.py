"""B-spline group-equivariant CNNs for any Lie group, on plain PyTorch tensors."""

from . import functional, models, nn, testing
from .converting import convert
from .exporting import export
from .grids import Grid, disc, lattice, local, repulsion, uniform
from .groups import GL2, O2, O3, SO2, SO3, Group, MatrixGroup, Product, Scale, Sphere, Translation, Trivial
from .nn import GConv, Lift, Project
from .splines import SplineBasis, bspline

__all__ = [
    "GL2",
    "O2",
    "O3",
    "SO2",
    "SO3",
    "GConv",
    "Grid",
    "Group",
    "Lift",
    "MatrixGroup",
    "Product",
    "Project",
    "Scale",
    "Sphere",
    "SplineBasis",
    "Translation",
    "Trivial",
    "bspline",
    "convert",
    "disc",
    "export",
    "functional",
    "lattice",
    "local",
    "models",
    "nn",
    "repulsion",
    "testing",
    "uniform",
]
__version__ = "0.1.0"
