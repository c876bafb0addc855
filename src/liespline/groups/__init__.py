"""Lie groups as small classes of pure functions on plain tensors."""

from .base import Group
from .scale import Scale
from .semidirect import Element, Semidirect
from .so2 import SO2
from .so3 import SO3
from .sphere import Sphere
from .translation import Translation
from .trivial import Trivial

__all__ = ["SO2", "SO3", "Element", "Group", "Scale", "Semidirect", "Sphere", "Translation", "Trivial"]
