"""Using a trained network outside Python: answers for image files, and an ONNX file for other runtimes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...export import export as as_plain
from ..data import DataError
from ..data.files import replacing
from ..data.pictures import read_array, strict_pillow
from ..runs.trained import Trained, load


def predict_files(checkpoint: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Class and confidence of each image file; all unreadable ones are named before any is answered."""
    trained = load(checkpoint)
    problems, images = [], []
    with strict_pillow():
        for file in files:
            try:
                images.append(_fit(file, read_array(file), trained))
            except DataError as error:
                problems += error.problems
    if problems:
        raise DataError(problems)
    answers = [trained.predict(image.unsqueeze(0))[0] for image in images]
    return [
        {"image": str(file), "class": name, "confidence": confidence}
        for file, (name, confidence) in zip(files, answers, strict=True)
    ]


def _fit(file: Path, pixels: Any, trained: Trained) -> Tensor:
    """The image as the network was trained on it: (C, H, W) floats in [0, 1]."""
    signature = trained.signature
    if len(signature.space) != 2:
        raise DataError(f"{file}: is an image, but the network was trained on volumes of {signature.space}")
    image = torch.from_numpy(pixels.astype(np.float32) / np.iinfo(pixels.dtype).max)
    image = image.unsqueeze(0) if image.ndim == 2 else image.movedim(-1, 0)
    if signature.in_channels == 1 and len(image) == 3:
        image = (image * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(0, keepdim=True)
    image = image.expand(signature.in_channels, *image.shape[1:])
    if tuple(image.shape[1:]) != signature.space:
        wanted = "×".join(map(str, reversed(signature.space)))
        found = "×".join(map(str, reversed(image.shape[1:])))
        raise DataError(f"{file}: is {found} pixels; the network was trained on {wanted}: resize the image")
    return image


def export_onnx(checkpoint: Path, file: Path) -> int:
    """Write the network as an ONNX file of plain convolutions, whole or not at all; its size in bytes."""
    trained = load(checkpoint)
    plain = as_plain(trained.network).eval()
    example = torch.zeros(2, trained.signature.in_channels, *trained.signature.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's remarks are about its own internals
        program = torch.onnx.export(
            plain,
            (example,),
            input_names=["images"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise DataError(f"{file}: the network could not be exported")
    data = program.model_proto.SerializeToString()
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        stream.write(data)
    return len(data)
