"""Classifiers of patches for WSInfer and QuPath: `torchscript_model.pt` and `config.json`, which need no liespline.

Nothing of WSInfer is imported. It cuts patches out of slides, scales them, and applies the softmax itself.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from .._export import export


def write_wsinfer(
    network: nn.Module,
    folder: str | Path,
    classes: Sequence[str],
    side: int,
    spacing_um: float,
    name: str = "liespline",
) -> None:
    """Write a classifier of RGB patches of `side` pixels, `spacing_um` micrometres each, as WSInfer's spec 1.0 asks.

    The network maps `(B, 3, side, side)` in [0, 1] to logits `(B, len(classes))`.
    Raises ValueError for another shape of the logits, for fewer than two classes and for equal names.
    """
    folder, classes = Path(folder), list(classes)
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError(f"write_wsinfer: classes = {classes}; needs two or more, each with its own name")
    if not 0 < spacing_um < float("inf"):
        raise ValueError(f"write_wsinfer: spacing_um = {spacing_um}; must be micrometres per pixel, such as 0.5")
    plain = export(network).cpu().float()
    patches = torch.rand(2, 3, side, side)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # that TorchScript is old: WSInfer reads nothing else; sizes are constants
        if (found := tuple(plain(patches).shape)) != (2, len(classes)):
            raise ValueError(f"write_wsinfer: patches {tuple(patches.shape)} give {found}, not a logit per {classes}")
        folder.mkdir(parents=True, exist_ok=True)
        torch.jit.save(torch.jit.trace(plain, patches, check_trace=False), os.fspath(folder / "torchscript_model.pt"))
    config = {
        "spec_version": "1.0",
        "architecture": "liespline",
        "num_classes": len(classes),
        "patch_size_pixels": side,
        "spacing_um_px": spacing_um,
        "class_names": classes,
        "transform": [{"name": "Resize", "arguments": {"size": side}}, {"name": "ToTensor"}],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
