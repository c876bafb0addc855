"""Checks for users' own groups and networks: are the axioms true, and how equivariant is the network?"""

from .axioms import check_group
from .equivariance import assert_equivariant, equivariance_error

__all__ = ["assert_equivariant", "check_group", "equivariance_error"]
