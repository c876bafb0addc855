"""Finite sets of group elements with Haar weights."""

from .grid import Grid
from .regular import disc, lattice, local, polyhedral, uniform
from .repulsion import repulsion

__all__ = ["Grid", "disc", "lattice", "local", "polyhedral", "repulsion", "uniform"]
