"""The sets of `liespline sweep records`: ours and the plain network of equal weights, one recipe for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..settings import Config, one_of
from ..tasks import find_task

RECORDS = "records"
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """One row of the table: a task, what all its networks share, and the networks, the decisive ones first."""

    about: str
    task: str
    shared: Changes
    networks: Mapping[str, Changes]
    pairs: tuple[tuple[str, str], ...] = field(default=())
    """Ours and the network beside it, whose difference is given."""

    def configs(self, changes: Changes) -> dict[str, Config]:
        """Every network's configuration; what a user asks for comes last."""
        task = find_task(self.task)
        base = task.defaults.updated(**self.shared)
        return {name: task.configured(base.updated(**own), **changes) for name, own in self.networks.items()}


def configs(chosen: str, changes: Changes) -> dict[str, Config]:
    """The networks of a set."""
    return SETS[one_of("set (records)", chosen, SETS)].configs(changes)


FAST = {"precision": "bf16-mixed", "compile": True}
RECIPE = {"schedule": "one-cycle", "lr": 5e-3, "batch": 128, "label_smoothing": 0.1, "ema": 0.995, **FAST}
CHAIN = {"widths": (24, 32, 36, 36, 48, 64)}
PLAIN = {"group": "none", "n_h": 1, "n_k": 1, "kernel": "dense"}
LOCAL = {"kernel": "local"}
MODES = {"optimiser": "adamw-modes"}
"""For data that come turned."""

# Separable layers have the fewest errors for their weights. No epoch is picked, so all 12,000 digits are learned.
_DIGITS = {**RECIPE, **CHAIN, "augment": "affine", "epochs": 56, "valid_too": True, "weights": 1_000_000}
_FULL: dict[str, Changes] = {"so2-16": {"n_h": 16, "separable": True}, "plain": PLAIN}
_IN_MODES = {"so2-16-modes": {**_FULL["so2-16"], **MODES}}
_LONGER = {"plain-long": {**PLAIN, "epochs": 168}}  # about the time of ours
_TURNED = "Rotated MNIST, generated: 12,000 digits to train on, 50,000 to test"
_PAIR = (("so2-16", "plain"),)


def _budgets(*weights: int) -> dict[str, Changes]:
    """Separable local kernels on 16 orientations, and the plain network, of several sizes."""
    ours = {"n_h": 16, "n_k": 5, "separable": True, **LOCAL}
    return {
        f"{name}-{w // 1000}k": {**how, "weights": w}
        for w in weights
        for name, how in (("so2-16", ours), ("plain", PLAIN))
    }


def _shares(networks: Mapping[str, Changes], shares: Mapping[float, tuple[int, int]]) -> dict[str, Changes]:
    """Ours and the plain network with shares of the labels, and the epochs of both: few images make short epochs."""
    return {
        f"{name}-{round(100 * share)}": {**how, "share": share, "epochs": epochs}
        for share, each in shares.items()
        for (name, how), epochs in zip(networks.items(), each, strict=True)
    }


_TISSUE = {**RECIPE, **MODES, "decay": 0.01, "batch": 64, "ema": 0.99, "network": "resnet", "augment": "rotate"}
_PCAM = {
    "o2-12": {"group": "o2", "n_h": 24, "n_k": 16, "kernel": "dense", "weights": 110_000},
    "plain": {**PLAIN, "weights": 117_000},
}
# What a patch is called depends on its middle. O(2) learns few labels in fewer epochs, then learns them by heart: the
# epochs of a tenth were settled on training patches outside of it, those of a quarter lie between.
_IN_DISC = {name: {**how, "disc": True} for name, how in _PCAM.items()}
_DISC = _shares(_IN_DISC, {1.0: (12, 12), 0.1: (30, 60), 0.25: (24, 36)})
# A ninth of the weights: kernels, and the epochs of a tenth, were settled on training patches that none of them learns.
_FEW = {"disc": True, "weights": 13_000}
_O2_FEW = {**_FEW, "group": "o2", "n_h": 24, "n_k": 5, "separable": True, **LOCAL}
_SMALL = _shares({"o2-12": _O2_FEW, "plain": {**PLAIN, **_FEW}}, {0.1: (60, 120), 1.0: (24, 36)})
_PAPER = {
    "paper-12": {"network": "pcam", "n_h": 12, "n_k": 12, "epochs": 16},
    "paper-2d": {"network": "pcam", **PLAIN, "epochs": 16},
}

# Every rotation sees itself alone until the maximum over all: kernels that relate rotations of 90° to each other
# learned badly (experiments/superseded/records-modelnet10-local). Upright volumes are resampled too, by a slant:
# they would else be sharper than the turned ones that are scored.
_SHAPES = {**RECIPE, "batch": 32, "ema": 0.99, "widths": (12, 16, 24, 32), "kernel_size": 5, "stride": 2}
_SO3 = {"group": "so3", "n_h": 24, "n_k": 1, "kernel": "apart"}
_IN_BOX = {"widths": (12, 16, 48, 96), "size": 34}
_VOLUME_PAIRS = (("so3-24", "plain"), ("so3-24", "plain-turned"), ("so3-24-turned", "plain-turned"))


def _volumes(about: str, epochs: int, size: Changes, steps: Changes | None = None) -> Record:
    words = f"{about} Trained upright, or on turned volumes; scored upright and in random orientation."
    upright, turned = {"augment": "zoom-shear"}, {**(steps or {}), "augment": "affine"}
    networks = {
        "so3-24": {**_SO3, **upright, "shift": True}, "plain": {**PLAIN, **upright},
        "so3-24-turned": {**_SO3, **turned}, "plain-turned": {**PLAIN, **turned},
    }  # fmt: skip
    return Record(words, "volumes", {**_SHAPES, "epochs": epochs, **size}, networks, _VOLUME_PAIRS)


def _moved(about: str, moved: str, shared: Changes, weights: int, **ours: Changes) -> Record:
    """A generated set: networks of a group, and the plain one, of as many weights."""
    networks = {**ours, "plain": PLAIN}
    shared = {**RECIPE, **CHAIN, "moved": moved, "weights": weights, **shared}
    return Record(about, "mnist", shared, networks, tuple((name, "plain") for name in ours))


_SIZES = {"augment": "zoom-shear", "epochs": 24}
_SCALES: Changes = {"group": "scale", "n_h": 3, "n_k": 3, **LOCAL}
_SCALES_APART: Changes = {"group": "scale", "n_h": 4, "n_k": 1, "kernel": "apart"}
_SIMILAR: Changes = {"group": "sim2", "n_h": (8, 3), "n_k": (3, 3), **LOCAL, **MODES}
_TURNS: Changes = {"group": "so2", "n_h": 16, "kernel": "dense"}
# Steps about these elements tile affNIST's ranges: turns of 27°, slants among them, zooms and squeezes of e^0.2. The
# grids are moved within a step in training, so that upright digits teach the whole of it.
_NEAR: Changes = {"within": 27, "shift": True}

SETS = {
    "rotmnist": Record(
        f"{_TURNED}.", "rotmnist", _DIGITS, {**_FULL, **_IN_MODES, **_LONGER},
        (*_PAIR, ("so2-16-modes", "so2-16"), ("so2-16", "plain-long")),
    ),
    "rotmnist-elastic": Record(
        f"{_TURNED}; bent in training.", "rotmnist", {**_DIGITS, "augment": "affine+elastic"}, _FULL, _PAIR
    ),
    "rotmnist-ensemble": Record(
        f"{_TURNED}; bent in training. Three networks that answer together.", "rotmnist",
        {**_DIGITS, "augment": "affine+elastic", "ensemble": 3, "weights": 3_000_000}, _FULL, _PAIR,
    ),
    "rotmnist-no-cue": Record(
        f"{_TURNED}, turned about their own mass: no offset tells what was up.", "rotmnist",
        {**_DIGITS, "about": "mass"}, _FULL, _PAIR,
    ),
    "rotmnist-small": Record(
        f"{_TURNED}; at most 30,000 weights.", "rotmnist", _DIGITS, _budgets(29_000),
        (("so2-16-29k", "plain-29k"),),
    ),
    "rotmnist-weights": Record(
        f"{_TURNED}; error against weights.", "rotmnist", _DIGITS, _budgets(29_000, 120_000, 480_000),
        tuple((f"so2-16-{k}k", f"plain-{k}k") for k in (29, 120, 480)),
    ),
    "rotmnist-labels": Record(
        f"{_TURNED}; 10 %, 25 % and all of the 10,000 labels.", "rotmnist", {**_DIGITS, "valid_too": False},
        _shares(_FULL, {0.1: (224, 224), 0.25: (112, 112), 1.0: (56, 56)}),
        tuple((f"so2-16-{s}", f"plain-{s}") for s in (10, 25, 100)),
    ),
    "pcam": Record(
        "A subset of PCam, recompressed: not comparable with the full set. At most 120,000 weights; all and 10 % of "
        "the labels.", "pcam", _TISSUE,
        _shares(_PCAM, {1.0: (12, 12), 0.1: (60, 60)}), (("o2-12-100", "plain-100"), ("o2-12-10", "plain-10")),
    ),
    "pcam-disc": Record(
        "A subset of PCam, recompressed: not comparable with the full set. At most 120,000 weights, in "
        "the largest disc alone; all, 10 % and 25 % of the labels.", "pcam", _TISSUE, _DISC,
        tuple((f"o2-12-{share}", f"plain-{share}") for share in (100, 10, 25)),
    ),
    "pcam-disc-small": Record(
        "A subset of PCam, recompressed: not comparable with the full set. 13,000 weights, in the largest disc alone; "
        "10 % and all of the labels.", "pcam", _TISSUE, _SMALL,
        tuple((f"o2-12-{share}", f"plain-{share}") for share in (10, 100)),
    ),
    "pcam-disc-grids": Record(
        "A subset of PCam, recompressed: not comparable with the full set. At most 120,000 weights, in "
        "the largest disc alone; O(2) answers with the mean over two grids.", "pcam", _TISSUE,
        {"o2-12-100": {**_DISC["o2-12-100"], "grids": 2}, "plain-100": _DISC["plain-100"]},
        (("o2-12-100", "plain-100"),),
    ),
    "pcam-disc-ensemble": Record(
        "A subset of PCam, recompressed: not comparable with the full set. At most 120,000 weights, in "
        "the largest disc alone. Two networks that answer together.", "pcam", {**_TISSUE, "ensemble": 2},
        {name: {**_DISC[name], "weights": 103_000} for name in ("o2-12-100", "plain-100")},
        (("o2-12-100", "plain-100"),),
    ),
    "pcam-more": Record(
        "A subset of PCam, recompressed: not comparable with the full set. A quarter of the labels, and the paper's "
        "networks with all.", "pcam", _TISSUE, {**_shares(_PCAM, {0.25: (40, 40)}), **_PAPER},
        (("o2-12-25", "plain-25"), ("paper-12", "paper-2d")),
    ),
    "modelnet10": _volumes("ModelNet10, voxels of 30³, a split of our own.", 60, {"widths": (12, 16, 48, 96)}, MODES),
    # The ball of 30³ cuts a fiftieth of the voxels or more off a third of all shapes, that of 34³ off 3 % of them.
    "modelnet10-34": _volumes(
        "ModelNet10, voxels of 30³ in the middle of 34³, a split of our own.", 60, _IN_BOX, MODES
    ),
    "modelnet10-spun": Record(
        "ModelNet10, voxels of 30³ in the middle of 34³, a split of our own. Trained upright, spun about the vertical "
        "axis alone; scored upright and in random orientation.", "volumes",
        {**_SHAPES, **_IN_BOX, "epochs": 60, "augment": "rotate-z+zoom-shear"},
        {"so3-24": {**_SO3, "shift": True}, "plain": PLAIN},
        (("so3-24", "plain"),),
    ),
    # Few volumes make short epochs: after 24, or 900 steps, the loss still fell
    # (experiments/superseded/records-vessel-64-24-epochs).
    "adrenal-28": _volumes("AdrenalMNIST3D, 28³, the official file.", 72, {"weights": 28_000}),
    # With every second voxel, as for 28³, these would take thirteen times as long.
    "adrenal-64": _volumes("AdrenalMNIST3D, 64³, the official file.", 72, {"weights": 28_000, "stride": 4}),
    "vessel-28": _volumes("VesselMNIST3D, 28³, the official file.", 72, {"weights": 28_000}),
    "vessel-64": _volumes("VesselMNIST3D, 64³, the official file.", 72, {"weights": 28_000, "stride": 4}),
    "scaled-digits": _moved(
        "MNIST, generated: shrunk to 0.3 to 1 of its size, 10,000 to train on, 50,000 to test.", "scaled", _SIZES,
        360_000, **{"scale-4-apart": _SCALES_APART, "scale-3": _SCALES},
    ),
    "scaled-fashion": _moved(
        "Fashion-MNIST, generated: shrunk to 0.3 to 1 of its size, 10,000 to train on, 50,000 to test.", "scaled",
        _SIZES, 360_000, **{"scale-3": _SCALES},
    ),
    "scaled-fashion-mirrored": _moved(
        "Fashion-MNIST, generated: shrunk to 0.3 to 1 of its size, 10,000 to train on, mirrored at random, 50,000 to "
        "test.", "scaled", {**MODES, "augment": "mirror+zoom-shear", "epochs": 60}, 480_000,
        **{"scale-4-apart": _SCALES_APART},
    ),
    "rotated-scaled-digits": _moved(
        "MNIST, generated: turned by any angle and shrunk to 0.3 to 1 of its size, 5,000 to train on, 50,000 to test.",
        "rotated-scaled", {"augment": "affine", "epochs": 30, "batch": 64}, 80_000,
        **{"sim2-8x3": _SIMILAR, "so2-16": _TURNS},
    ),
    "affine-digits": _moved(
        "MNIST upright, anywhere in 40², to train on; tested on test digits moved as affNIST's are. Generated.",
        "affine", {"augment": "none", "epochs": 10}, 60_000,
        **{
            "gl2-3x2x2x1": {**_NEAR, **LOCAL, "group": "gl2", "n_h": (3, 2, 2, 1)},
            "sim2-3x2": {**_NEAR, **LOCAL, "group": "sim2", "n_h": (3, 2), "n_k": (3, 3)},
            "sim2-3x2-apart": {**_NEAR, "kernel": "apart", "group": "sim2", "n_h": (3, 2)},
        },
    ),
}  # fmt: skip
