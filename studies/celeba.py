"""The paper's networks on CelebA (section 4, tab. GCNNCelebA): as its text has them, as its scripts had, and a few."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from liespline.lab.sweep.study import Study

PAPER_SCALES, RELEASED_SCALES = tuple(2 ** (i / 2) for i in range(5)), (1.0, 1.6, 2.0, 2.8, 4.0)
"""The fixed scales of the five 2-D networks, as the text says and as the released scripts had them."""
# A sweep that is stopped early leaves whole comparisons: all kernels of most scales first, then of fewer, then 2-D.
SCALED = {
    f"{kernel}-{n_h}-{n_k}": {"kernel": kernel, "elements": n_h, "basis": n_k}
    for n_h in (5, 3, 2, 4)
    for kernel, n_k in (("local", 3), ("dense", n_h), ("local", 1))
}


def plain(scales: Iterable[float], numbers: Iterable[int] = range(1, 6)) -> dict[str, dict[str, Any]]:
    """2-D networks at the scales of these numbers, 1 to 5, each without zoom in training and with it."""
    networks: dict[str, dict[str, Any]] = {}
    for number in numbers:
        base = {"group": "none", "elements": 1, "basis": 1, "scale": tuple(scales)[number - 1]}
        networks |= {f"plain-{number}": base, f"plain-{number}-zoom": {**base, "augment": "zoom"}}
    return networks


# The paper's networks on CelebA (section 4, tab. GCNNCelebA), as its text says.
PAPER = Study(
    task="celeba",
    data="A folder made by `python -m studies.data.celeba_prepare SRC OUT` from the official files.",
    protocol="The paper's networks and settings: two to five scales with N_k = 1, 3 and N_h, and 2-D at five scales.",
    networks={**SCALED, **plain(PAPER_SCALES)},
)

# The paper's networks on CelebA as its released scripts had them.
RELEASED = replace(
    PAPER,
    protocol="The networks and settings of the paper's released scripts.",
    recipe={"preset": "released"},
    networks={**SCALED, **plain(RELEASED_SCALES)},
)

# The paper's twelve networks of several scales on CelebA, and its 2-D network at the scales 1 and 2.
SHORT = replace(
    PAPER,
    protocol="The paper's twelve networks of several scales, and 2-D at the scales 1 and 2.",
    networks={**SCALED, **plain(PAPER_SCALES, (3, 1))},
)
