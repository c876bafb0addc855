"""nnU-Net v2 with our U-Net: its plans name a class, which its own trainer and predictor build.

Nothing of nnU-Net is imported: `write_plans` writes plans that name `EquivariantUNet` beside nnU-Net's own.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from ..grids import Grid, uniform
from ..groups import O2, O3, SO2, SO3, Axial, Group, Trivial
from ..models.unet import UNet, unet
from ..models.widths import in_lanes

PLANE = {"so2": SO2(), "o2": O2()}
SPACE = {"so3": SO3(), "o3": O3()}
ELEMENTS = {"so2": 8, "o2": 16, "so3": 12, "o3": 24, "none": 1}
"""The groups, and how many elements they have where nothing is said."""
NO_MIRRORING = "nnUNetTrainerNoMirroring"
"""nnU-Net's trainer whose networks see no mirror images, neither in training nor in prediction."""


class EquivariantUNet(nn.Module):
    """`models.unet` with the arguments of nnU-Net's plans: `strides` and `kernel_sizes` have an entry for each size.

    The U-Net is called `decoder`, where nnU-Net switches deep supervision.
    """

    def __init__(
        self, input_channels: int, num_classes: int, *, group: str, elements: int, widths: Sequence[int],
        strides: Sequence[Sequence[int]], kernel_sizes: Sequence[Sequence[int]], kernel: str = "dense",
        norm: str = "instance", checkpoint: bool = True, deep_supervision: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if set(strides[0]) != {1}:
            raise ValueError(f"EquivariantUNet: strides = {strides!r}; the first must be 1: the image's own size")
        grid = grid_of(group, elements, len(strides[0]))
        options: dict[str, Any] = {"kernel_size": kernel_sizes, "factor": strides[1:], "kernel": kernel, "norm": norm}
        made = unet(
            input_channels, num_classes, grid, widths=widths, checkpoint=checkpoint, deep_supervision=True, **options
        )
        self.decoder = cast(UNet, made)
        self.decoder.deep_supervision = deep_supervision

    def forward(self, x: Tensor) -> Any:
        """Map patches `(B, input_channels, *space)` to logits, or in training to a list of them, the finest first."""
        return self.decoder(x)


def grid_of(group: str, elements: int, d: int) -> Grid:
    """The elements of a group on d axes; in volumes, groups of the plane act across the first, nnU-Net's coarsest."""
    if group not in ELEMENTS:
        raise ValueError(f"group = {group!r}, must be one of {', '.join(ELEMENTS)}")
    if d not in (2, 3) or (group in SPACE and d == 2):
        raise ValueError(
            f"group = {group!r} acts on volumes, and this configuration has {d} axes: take so2, o2 or none"
        )
    if group == "none":
        return uniform(Trivial(d), 1)
    acting: Group = SPACE[group] if group in SPACE else PLANE[group]
    return uniform(acting if group in SPACE or d == 2 else Axial(acting, 0), elements)


def has_mirrors(grid: Grid) -> bool:
    """Whether a grid contains the reflection along every axis: mirror images then have mirrored predictions."""
    matrices = grid.group.matrix(grid.elements)
    mirrors = 1 - 2 * torch.eye(grid.group.space_dim, dtype=matrices.dtype)
    return all(bool(((matrices - mirror.diag()).abs().amax((1, 2)) < 1e-6).any()) for mirror in mirrors)


class Written(NamedTuple):
    """New plans: their file, what became of each configuration, and with which trainer each is trained."""

    file: Path
    configurations: dict[str, str]
    trainers: dict[str, str | None]


def write_plans(
    dataset: int, group: str, elements: int | None = None, *, kernel: str = "dense", base: str = "nnUNetPlans",
    name: str | None = None,
) -> Written:  # fmt: skip
    """Write plans that name our U-Net beside those of nnU-Net, on the same preprocessed data.

    Depth, strides and patches are nnU-Net's. Windows of 3 become 5, where rotated kernels fit. Widths are nnU-Net's
    over √elements: dense kernels then have about as many parameters. They stand in the file and may be changed there.
    """
    folder = _folder(dataset)
    found = sorted(file.stem for file in folder.glob("*.json") if "configurations" in json.loads(file.read_text()))
    if base not in found:
        there = f"there are {', '.join(found)}" if found else f"run nnUNetv2_plan_and_preprocess -d {dataset} first"
        raise ValueError(f"{folder}: has no plans {base}.json; {there}")
    plans = json.loads((folder / f"{base}.json").read_text())
    n, name = ELEMENTS.get(group, 1) if elements is None else elements, name or f"liespline{group.upper()}"
    kept: dict[str, Any] = {}
    written, trainers = {}, {}
    for title, configuration in plans["configurations"].items():
        if "architecture" not in configuration:  # one that takes over another's
            if configuration.get("inherits_from") in kept:
                kept[title] = configuration
            continue
        theirs = configuration["architecture"]["arch_kwargs"]
        d = len(theirs["strides"][0])
        if group in SPACE and d == 2:
            written[title] = f"left out: {group} acts on volumes"
            continue
        grid = grid_of(group, n, d)
        widths = [max(2, round(width / math.sqrt(len(grid)))) for width in theirs["features_per_stage"]]
        ours = {
            "group": group, "elements": n, "widths": list(next(chain(in_lanes(widths), [widths]))),
            "strides": theirs["strides"], "kernel": kernel,
            "kernel_sizes": [[5 if side == 3 else side for side in sides] for sides in theirs["kernel_sizes"]],
        }  # fmt: skip
        parameters = sum(p.numel() for p in EquivariantUNet(1, 2, **ours).parameters())
        of = {"network_class_name": f"{__name__}.EquivariantUNet", "arch_kwargs": ours, "_kw_requires_import": []}
        kept[title] = configuration | {"architecture": of}
        written[title] = f"widths {', '.join(map(str, ours['widths']))}, {parameters:,} parameters"
        trainers[title] = NO_MIRRORING if has_mirrors(grid) else None
    if not kept:
        raise ValueError(f"group = {group!r}: {base} of dataset {dataset} has no configuration it acts on: {written}")
    file = _save(folder / f"{name}.json", plans | {"plans_name": name, "configurations": kept})
    return Written(file, written, trainers)


def _folder(dataset: int) -> Path:
    """Where nnU-Net keeps the plans of a dataset."""
    root = os.environ.get("nnUNet_preprocessed")  # noqa: SIM112, nnU-Net's name
    if not root:
        raise ValueError("nnUNet_preprocessed is not set: nnU-Net keeps plans there; set it as for its own commands")
    folders = sorted(Path(root).glob(f"Dataset{dataset:03d}_*"))
    if len(folders) != 1:
        what = f"{len(folders)} folders of that number" if folders else "no folder of that number"
        right = "keep one of them" if folders else f"run nnUNetv2_plan_and_preprocess -d {dataset} first"
        raise ValueError(f"dataset {dataset}: {what} in nnUNet_preprocessed = {root}; {right}")
    return folders[0]


def _save(file: Path, plans: dict[str, Any]) -> Path:
    """Write plans, but not over others: networks may have been trained with them."""
    text = json.dumps(plans, indent=4) + "\n"
    if file.exists() and json.loads(file.read_text()) != plans:
        raise ValueError(f"{file}: there are other plans of this name; give these another with --name, or delete it")
    file.write_text(text)
    return file
