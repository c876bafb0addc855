"""Lie groups as small classes of pure functions on plain tensors."""

from .axial import Axial
from .base import Even, Group
from .gl2 import GL2
from .matrixgroup import MatrixGroup
from .o2 import O2
from .o3 import O3
from .product import Product
from .scale import Scale
from .semidirect import Element, Semidirect
from .so2 import SO2
from .so3 import SO3
from .sphere import Sphere
from .translation import Translation
from .trivial import Trivial

__all__ = [
    "GL2", "O2", "O3", "SO2", "SO3", "Axial", "Element", "Even", "Group", "MatrixGroup", "Product", "Scale",
    "Semidirect", "Sphere", "Translation", "Trivial",
]  # fmt: skip
