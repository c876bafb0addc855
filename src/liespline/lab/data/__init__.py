"""Data sets: official files, users' own and drawn ones, checked before anything trains on them."""

from .files import DataError
from .split import Split, as_float, batched

__all__ = ["DataError", "Split", "as_float", "batched"]
