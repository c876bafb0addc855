"""Which path the user forces, if any."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("auto", "dense", "fourier", "banded", "separable", "triton")


def _known(name: str) -> str:
    if name not in _NAMES:
        raise ValueError(f"unknown path {name!r}: use one of {', '.join(_NAMES)}")
    return name


_forced = _known(os.environ.get("LIESPLINE_PATH", "auto"))


def forced() -> str:
    """The path that everything takes, or "auto"."""
    return _forced


@contextmanager
def use(name: str) -> Iterator[None]:
    """Compute by one path inside the block ("auto" chooses by cost): `with paths.use("dense"): ...`.

    "separable" is "banded" for layers whose kernels do not separate, and "fourier" is "dense" for those it does not
    take; "triton" raises for inputs it does not take.
    """
    global _forced
    before, _forced = _forced, _known(name)
    try:
        yield
    finally:
        _forced = before
