"""The precision that a network is trained in, for what is done with it elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_KINDS = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def in_precision(name: str, device: str) -> AbstractContextManager[Any]:
    """Compute as training with `--precision name` does, on a device of this type."""
    return torch.autocast(device, _KINDS[name]) if name in _KINDS else nullcontext()
