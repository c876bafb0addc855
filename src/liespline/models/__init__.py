"""Ready-made networks: the paper's two, and a general classifier."""

from .celeba import celeba
from .classifier import classifier
from .pcam import pcam

__all__ = ["celeba", "classifier", "pcam"]
