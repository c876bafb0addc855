"""Patches of PCam: O(2) beside the plain network, what helps, and the paper's networks."""

from collections.abc import Iterable
from typing import Any

from liespline.lab.sweep.study import Row, Study
from studies.front import Front
from studies.networks import RELATIVE
from studies.recipes import FAST, IN_DISC, LOCAL, PCAM, PLAIN, SUBSET, TISSUE, VALID_AUC, shares
from studies.recipes import SEALED as SEALED_DATA

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters; all and 10 % of the labels.",
    recipe=TISSUE,
    networks=shares(PCAM, {1.0: (12, 12), 0.1: (60, 60)}),
    rows=[
        Row("o2-12-100", "plain-100", VALID_AUC),
        Row("o2-12-10", "plain-10", VALID_AUC),
    ],
)

# O(2) fits few labels in fewer epochs, then overfits: the epochs of a tenth were settled on training patches outside of
# it (pcam_tenth_held_out), those of a quarter lie between.
OF_DISC = shares(IN_DISC, {1.0: (12, 12), 0.1: (30, 60), 0.25: (24, 36)})

# A subset of PCam, seen in the largest disc alone: O(2) beside the plain network; all, 10 % and 25 % of the labels.
DISC = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone; all, 10 % and 25 % of the labels.",
    recipe=TISSUE,
    networks=OF_DISC,
    rows=[
        Front("o2-12-100", "plain-100", VALID_AUC, "PCam subset, on which recipes were chosen: AUC"),
        Front("o2-12-10", "plain-10", VALID_AUC, "the same, a tenth of the labels"),
        Row("o2-12-25", "plain-25", VALID_AUC),
    ],
)

# A subset of PCam in the largest disc: the mean over two networks.
DISC_ENSEMBLE = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone. The predictions of two networks are averaged.",
    recipe={**TISSUE, "ensemble": 2},
    networks={name: {**OF_DISC[name], "parameters": 103_000} for name in ("o2-12-100", "plain-100")},
    rows=[Row("o2-12-100", "plain-100", VALID_AUC)],
)

# A subset of PCam in the largest disc: O(2) predicts with the mean over two grids.
DISC_GRIDS = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone; O(2) predicts with the mean over two grids.",
    recipe=TISSUE,
    networks={"o2-12-100": {**OF_DISC["o2-12-100"], "tta_grids": 2}, "plain-100": OF_DISC["plain-100"]},
    rows=[Row("o2-12-100", "plain-100", VALID_AUC)],
)

# A ninth of the parameters: kernels, and the epochs of a tenth, were settled on training patches that no network was
# trained on (pcam_small_held_out).
FEW = {"circular_mask": True, "parameters": 13_000}
SMALL_O2 = {**FEW, "group": "o2", "elements": 24, "basis": 5, "separable": True, **LOCAL}

# A subset of PCam in the largest disc with 13,000 parameters; 10 % and all of the labels.
DISC_SMALL = Study(
    task="pcam",
    data=SUBSET,
    protocol="13,000 parameters, in the largest disc alone; 10 % and all of the labels.",
    recipe=TISSUE,
    networks=shares({"o2-12": SMALL_O2, "plain": {**PLAIN, **FEW}}, {0.1: (60, 120), 1.0: (24, 36)}),
    rows=[
        Row("o2-12-10", "plain-10", VALID_AUC),
        Row("o2-12-100", "plain-100"),
    ],
)

OF_PAPER = {"network": "classifier", "epochs": 16}

# A subset of PCam: a quarter of the labels, and the paper's networks trained by the recipe of the others.
MORE = Study(
    task="pcam",
    data=SUBSET,
    protocol="A quarter of the labels, and the paper's networks with all.",
    recipe=TISSUE,
    networks={
        **shares(PCAM, {0.25: (40, 40)}),
        "paper-12": {**OF_PAPER, "elements": 12, "basis": 12},
        "paper-2d": {**PLAIN, **OF_PAPER},
    },
    rows=[Row("o2-12-25", "plain-25"), Row("paper-12", "paper-2d")],
)

RESNET_O2 = {"group": "o2", "elements": 24, "circular_mask": True, "parameters": 116_000}
NEW = {**RESNET_O2, "architecture": 2, "kernel": "local", "basis": 3}

# ResNet-18's plan beside the ready ResNet of 0.2, at equal parameters, on PCam patches that no table scores.
RESNET = Study(
    task="studies.paper.pcam:PCAM",
    data=SEALED_DATA,
    protocol="117,000 parameters, in the largest disc alone. `new` has four stages, `three` the same without the last: "
    "their first stages are 2 and 4 channels wide. `even` and `mild` have three stages of equal and of slowly growing "
    "widths, `two` those of the old one.",
    recipe={**TISSUE, "epochs": 8},
    networks={
        "old": {**RESNET_O2, "architecture": 1, "kernel": "dense", "basis": 16, "parameters": 110_000},
        "new": NEW,
        "three": {**NEW, "widths": (8, 8, 16, 16, 32, 32)},
        "even": {**NEW, "widths": (16, 16, 16, 16, 16, 16)},
        "mild": {**NEW, "widths": (16, 16, 24, 24, 32, 32)},
        "two": {**NEW, "widths": (16, 16, 32, 32)},
    },
    seeds=5,
    rows=[Row(name, "old", measure=VALID_AUC) for name in ("new", "three", "even", "mild", "two")],
)

SMOOTH_O2 = {**IN_DISC["o2-12"], "architecture": 2, "kernel": "local", "basis": 3, "parameters": 116_000}

# ReLU, SiLU and smooth networks on PCam patches that no table scores: how steady and how accurate they are.
SMOOTH = Study(
    task="studies.paper.pcam:PCAM",
    data=SEALED_DATA,
    protocol="The same network and recipe, activations alone differ; `smooth` also interpolates along H.",
    recipe={**TISSUE, "epochs": 8},
    networks={"relu": SMOOTH_O2, "silu": {**SMOOTH_O2, "activation": "silu"}, "smooth": {**SMOOTH_O2, "smooth": True}},
    rows=[Row(ours, "relu", measure=measure) for ours in ("silu", "smooth") for measure in (VALID_AUC, RELATIVE)],
)

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


# The paper's 25 networks on PCam (section 4, tab. GCNNPCAM).
PAPER = Study(
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

# A sweep that is stopped early leaves whole comparisons: each network comes with the one it is compared to.
CHOSEN = (
    ("dense", 1, 1), ("dense", 12, 12), ("unturned", 1, 1), ("unturned", 12, 12),
    ("dense", 8, 8), ("dense", 16, 8), ("atrous", 16, 8),
    ("dense", 4, 4), ("dense", 16, 4), ("atrous", 16, 4), ("local", 16, 3), ("local", 16, 5),
    ("dense", 16, 16), ("local", 12, 3),
)  # fmt: skip

# Fourteen of the paper's networks on PCam, which decide each of its claims by one pair at least.
SHORT = Study(
    task="pcam",
    data="PCam's six official files.",
    protocol="Fourteen of the paper's networks, with its settings.",
    networks=networks(CHOSEN),
)

# The paper's 25 networks on PCam patches whose test slides nothing was tuned on.
SEALED = Study(
    task="studies.paper.pcam:PCAM",
    data="A subset of PCam, recompressed as JPEG: 12,782 patches to train on, 6,389 other ones to pick the epoch by, "
    "and the 3,000 of the official validation part, from other slides, to test on once.",
    protocol="The paper's settings, but 40 epochs of the subset, in batches of 128 at a learning rate of 0.04 that is "
    "halved after every 12 % of the epochs. Augmented as in the paper, with quarter turns except where `unturned`. One "
    "network, one test copy; the epoch with the best validation accuracy.",
    recipe={"epochs": 40, "batch_size": 128, "lr": 0.04, **FAST},
    networks=PAPER.networks,
    seeds=3,
    rows=[
        Front("dense-12-12", "dense-1-1", "AUC", "PCam subset, tested once, the paper's networks: AUC",
              reader="pathologist"),
    ],
)  # fmt: skip

# The paper's (12, 12) network on PCam beside windows that hold their splines whole, at equal parameters.
WHOLE = Study(
    task="pcam",
    data="PCam's files; ours are a subset, recompressed.",
    protocol="The paper's chain, and the same in windows of 7×7 with smooth halving in place of max pooling.",
    recipe={"epochs": 24, "batch_size": 128, "lr": 0.04, **FAST},
    networks=networks([("dense", 12, 12), ("whole", 12, 12)]),
)
