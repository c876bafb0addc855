"""What torch's compiler must not do with our networks."""

import os
import sys
from typing import Any

import torch
from torch.torch_version import TorchVersion

_GAPS = "TORCHINDUCTOR_COMPREHENSIVE_PADDING"
_MENDED = "2.13"


def without_gaps(version: str = torch.__version__) -> None:
    """Keep the compiler of torch before 2.13 from leaving gaps between the rows that it saves for the backward pass.

    It forgets some of them where channels lie innermost: a batch norm in evaluation mode before a mean over H had
    gradients of NaN, and the gradient of a maximum over H went to places outside of H. Who sets the variable decides.
    """
    if TorchVersion(version) >= _MENDED or _GAPS in os.environ:
        return
    os.environ[_GAPS] = "0"  # read when the compiler is first imported
    config: Any = sys.modules.get("torch._inductor.config")
    if config is not None:
        config.comprehensive_padding = False
