"""The paper's 25 networks on PCam (section 4, tab. GCNNPCAM)."""

from collections.abc import Iterable
from typing import Any

from liespline.lab.sweep.study import Study

EQUAL = (1, 4, 8, 12, 16)
COARSE = ((8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
OPTIONS: dict[str, dict[str, Any]] = {
    "unturned": {"kernel": "dense", "augment": "no-rot90"},
    "whole": {"kernel": "dense", "kernel_size": 7},
}
"""What other words than kernels stand for: training without rotations by 90°, and windows of 7×7."""


def networks(kinds: Iterable[tuple[str, int, int]]) -> dict[str, dict[str, Any]]:
    """Networks by kernel, N_h and N_k."""
    return {
        f"{kind}-{h}-{k}": {"elements": h, "basis": k, **OPTIONS.get(kind, {"kernel": kind})} for kind, h, k in kinds
    }


STUDY = Study(
    task="pcam",
    data="PCam's six official files.",
    protocol="The paper's networks and settings.",
    networks=networks(
        [
            *(("dense", n, n) for n in EQUAL),
            *(("unturned", n, n) for n in (1, 12)),
            *((kernel, *pair) for pair in COARSE for kernel in ("dense", "atrous")),
            *(("local", n_h, n_k) for n_h in (8, 12, 16) for n_k in (3, 5)),
        ]
    ),
)
