"""Finite sets of group elements with Haar weights."""

from ..groups.polyhedra import polyhedral
from .grid import Grid
from .regular import disc, lattice, local, uniform
from .repulsion import repulsion

__all__ = ["Grid", "disc", "lattice", "local", "polyhedral", "repulsion", "uniform"]
