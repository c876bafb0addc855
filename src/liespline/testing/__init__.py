"""Checks for users' own groups and networks: are the axioms true, and how equivariant is the network?"""

from .axioms import check_group
from .breaking import Breaking, breaking
from .engine import Engine, LayerPath, engine
from .equivariance import Equivariance, assert_equivariant, equivariance_error, measure_equivariance
from .measure import OutputChange, changed_predictions, output_change

__all__ = [
    "Breaking", "Engine", "Equivariance", "LayerPath", "OutputChange", "assert_equivariant", "breaking",
    "changed_predictions", "check_group", "engine", "equivariance_error", "measure_equivariance", "output_change",
]  # fmt: skip
