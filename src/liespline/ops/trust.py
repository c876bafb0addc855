"""Whether our kernels run here: on such a device, with the Triton that is installed, and rightly."""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._check import Size
from .._torch import constant, full_precision, real, transformed
from .operator import Differentiable, capability

RAN = ((3, 6),)  # versions of Triton with which all kernels ran on a GPU: `make gpu`
_FAR = 0.02  # of the reference's norm; bfloat16 rounds to a fifth of that
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # as Triton reads it, when it is first imported


class Kernels(NamedTuple):
    """Kernels of one kind, and what they need.

    Each of `calls` makes an operator and arguments on which it is compared, once, with torch's own operators where the
    kernels never ran with the Triton that is installed: an error in a compiler then costs speed, and no result.
    """

    name: str
    dtypes: tuple[torch.dtype, ...]
    devices: str
    fits: Callable[[Size], bool]  # whether a GPU of that compute capability takes them
    calls: tuple[Callable[[torch.device, torch.dtype], tuple[Differentiable, tuple[Any, ...]]], ...]
    oldest: Size
    interpreted: bool = True  # whether Triton's interpreter runs them, on a CPU

    def lacks(self, version: Size | None) -> str:
        """Say what a version of Triton lacks for them; nothing where it lacks nothing."""
        needed = f"{_text(self.oldest)} or later is needed"
        if version is None:
            return f"Triton is not installed, {needed}"
        return "" if version >= self.oldest else f"Triton {_text(version)} is installed, {needed}"


KINDS: dict[str, Kernels] = {}


@constant
def off(kind: str, device: torch.device, dtype: torch.dtype) -> str:
    """Say why kernels of a kind do not compute such numbers; nothing where they do."""
    missing = _missing(kind, device, dtype)
    # Under a transform no kernel is launched, and nothing can be compared.
    return missing if missing or transformed() else _wrong(kind, device, dtype)


@cache
def _missing(kind: str, device: torch.device, dtype: torch.dtype) -> str:
    kernels = KINDS[kind]
    interpreted = INTERPRETED and kernels.interpreted and device.type == "cpu"
    if device.type != "cuda" and not interpreted:
        return f"the input is on {device.type!r}, they run on {kernels.devices}"
    lacks = kernels.lacks(installed())
    if lacks or interpreted:
        return lacks
    if dtype not in kernels.dtypes:
        names = " or ".join(str(one).removeprefix("torch.") for one in kernels.dtypes)
        return f"the layer computes in {str(dtype).removeprefix('torch.')}, they take {names}"
    if not kernels.fits(capability(device)):
        found = _text(capability(device))
        return f"this GPU has compute capability {found}, they run on {kernels.devices}"
    return ""


@cache
def _wrong(kind: str, device: torch.device, dtype: torch.dtype) -> str:
    version, kernels = installed(), KINDS[kind]
    if version is None or version in RAN or not (INTERPRETED or torch.cuda.is_available()):
        return ""
    try:
        fars = [distance(*call(device, dtype)) for call in kernels.calls]
        far = next((far for far in fars if not far < _FAR), None)  # NaN too
        wrong = "" if far is None else f"their results are off by {far:.2g} of what torch's own operators give"
    except Exception as error:  # whatever a compiler that never met these kernels may say
        wrong = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if wrong:
        wrong = f"with Triton {_text(version)}, which they never ran with, {wrong}"
        warnings.warn(f"{kernels.name} are off: {wrong}. torch's own operators compute instead.", stacklevel=2)
    return wrong


def distance(operator: Differentiable, arguments: tuple[Any, ...]) -> float:
    """Return how far an operator is from its definition, values and gradients, over the norm of what is right."""
    with real(), torch.enable_grad(), full_precision(_device(arguments)):
        found, right = (
            _values(function, arguments, operator.tensors, exact)
            for function, exact in ((operator, False), (operator.plain, True))
        )
        pairs = zip(found, right, strict=True)
        errors = [(one.double() - other.double()).norm() / other.double().norm() for one, other in pairs]
        return float(torch.stack(errors).max())  # NaN if any is


def _values(function: Callable[..., Any], arguments: tuple[Any, ...], tensors: int, exact: bool) -> list[Tensor]:
    """A result and its gradients, computed in float32 at least where `exact`."""
    leaves = [value.detach() for value in arguments[:tensors]]
    leaves = [leaf.to(torch.promote_types(leaf.dtype, torch.float32)) if exact else leaf for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    out = function(*leaves, *arguments[tensors:])
    out = out[0] if isinstance(out, tuple) else out
    return [out.detach(), *torch.autograd.grad(out, leaves, drawn(*out.shape, seed=7).to(out))]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Return numbers that are the same in every process, and draw nothing from the user's generators."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _device(arguments: tuple[Any, ...]) -> torch.device:
    return next(value.device for value in arguments if isinstance(value, Tensor))


@cache
def installed() -> Size | None:
    """Return the version of Triton, None without."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return None
    return tuple(int(part) for part in version.split(".")[:2])


def _text(version: Size) -> str:
    return ".".join(map(str, version))
