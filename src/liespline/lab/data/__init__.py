"""Data sets: official files, users' own and drawn ones, checked before anything trains on them."""

from .files import DataError
from .samples import as_float
from .split import Split, batched

__all__ = ["DataError", "Split", "as_float", "batched"]
