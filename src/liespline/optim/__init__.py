"""Optimisers that know about splines."""

from .spectral import SpectralAdamW

__all__ = ["SpectralAdamW"]
