"""Using a trained network outside Python: answers for image files, and an ONNX file for other runtimes."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...exporting import export as as_plain
from ..data import DataError, as_float
from ..data.centred import centred
from ..data.files import replacing
from ..data.pictures import SUFFIXES, read_array, strict_pillow
from ..data.scans import SCAN_FORMATS, Reading, is_scan, read_scan
from ..data.split import in_colours
from ..data.volumes import ARRAYS, read_volumes
from ..runs.trained import Trained, load
from .evaluate import best_device
from .finding import by_suffix, find_files
from .scores import at_once

BATCH = 64
CONSTANT = 1024
"""How many numbers a constant has at most that is computed when an ONNX file is written."""


def predict_files(checkpoint: Path, paths: Sequence[Path]) -> tuple[list[dict[str, Any]], list[str]]:
    """Class, confidence and all probabilities of every image in files and folders, and remarks on what was left out.

    Images are brought to the network as training brought them. All unreadable files are named before any is answered.
    """
    trained = load(checkpoint)
    config = trained.config
    if trained.signature.kind not in ("classes", "tags", "numbers"):
        raise DataError(f"{checkpoint}: finds landmarks, not classes; use it from Python with liespline.lab.load")
    trained.to(best_device(config))
    if trained.signature.spacing is not None:
        files, remarks = find_files(paths, is_scan, SCAN_FORMATS)
    else:
        suffixes = ARRAYS if len(trained.signature.space) == 3 else SUFFIXES
        files, remarks = find_files(paths, by_suffix(suffixes), ", ".join(suffixes))
    problems, found = [], []
    with strict_pillow():
        for file in files:
            try:
                found += [(name, _fitting(name, image, trained)) for name, image in _images(file, trained)]
            except DataError as error:
                problems += error.problems
    if problems:
        raise DataError(problems)
    most = at_once(trained.signature.space, BATCH)
    return [row for batch in _batches(found, most) for row in _answers(trained, batch)], remarks


def task_of(checkpoint: Path) -> str:
    """The task that a network was trained for."""
    return load(checkpoint).config.task


def _images(file: Path, trained: Trained) -> Iterator[tuple[str, Tensor]]:
    """Every image of a file by name: (C, *space), as training would see it, apart from its channels."""
    if (side := trained.signature.spacing) is not None:
        samples = Reading(trained.config.window, side).samples(read_scan(file))
        yield str(file), torch.from_numpy(centred(samples, trained.signature.space))
        return
    if len(trained.signature.space) == 3:
        boxed = trained.config.size is not None  # as in training: in the middle of a box
        for name, volume in read_volumes(file):
            yield name, torch.from_numpy(centred(volume.numpy(), trained.signature.space)) if boxed else volume
        return
    pixels = torch.tensor(trained.prepared(read_array(file)))
    yield str(file), pixels.unsqueeze(0) if pixels.ndim == 2 else pixels.movedim(-1, 0)


def _fitting(name: str, image: Tensor, trained: Trained) -> Tensor:
    """The image as the network takes it: floats with its channels, of a size it can answer for."""
    channels = trained.signature.in_channels
    if {len(image), channels} not in ({1, 3}, {channels}):
        raise DataError(f"{name}: has {len(image)} channels; the network learned from {channels}")
    trained.check_size(tuple(image.shape[1:]), name)
    return as_float(in_colours(image.unsqueeze(0), channels))[0]


def _batches(found: Sequence[tuple[str, Tensor]], most: int) -> Iterator[Sequence[tuple[str, Tensor]]]:
    for _, same in groupby(found, key=lambda pair: pair[1].shape):
        group = list(same)
        yield from (group[i : i + most] for i in range(0, len(group), most))


@torch.no_grad()
def _answers(trained: Trained, batch: Sequence[tuple[str, Tensor]]) -> list[dict[str, Any]]:
    device = next(trained.parameters()).device
    images = torch.stack([image for _, image in batch]).to(device)
    rows: list[dict[str, Any]] = []
    outputs = trained(images).double()
    if trained.signature.kind != "classes":
        values = (outputs if trained.signature.kind == "numbers" else outputs.sigmoid()).tolist()
        return [
            {"image": name, "values": dict(zip(trained.classes, found, strict=True))}
            for (name, _), found in zip(batch, values, strict=True)
        ]
    for (name, _), shares in zip(batch, outputs.softmax(-1).tolist(), strict=True):
        best = max(range(len(shares)), key=shares.__getitem__)
        probabilities = dict(zip(trained.classes, shares, strict=True))
        rows.append({"image": name, "class": trained.classes[best], "confidence": shares[best]})
        rows[-1]["probabilities"] = probabilities
    return rows


def about(trained: Trained) -> dict[str, str]:
    """What one needs to know to use the network elsewhere: what comes out, and what goes in."""
    signature, window = trained.signature, trained.config.window
    scaling = "unsigned integers divided by the largest of their type, floats as they are"
    if signature.spacing is not None:
        scaling = (
            f"from {window[0]} to {window[1]} mapped to 0 to 1, and cut"
            if window
            else "each volume cut to its percentiles 0.5 and 99.5, less its mean, divided by its standard deviation"
        )
    found = {"task": trained.config.task, "outputs": signature.kind, "classes": json.dumps(signature.classes)}
    found |= {"scaling": scaling, "shape": json.dumps([signature.in_channels, *signature.space])}
    return found | ({"spacing_mm": f"{signature.spacing:g}"} if signature.spacing is not None else {})


@contextmanager
def _exporter_manners() -> Iterator[None]:
    """Keep the exporter's remarks, which are about its own internals, off the screen."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def export_onnx(checkpoint: Path, file: Path, *, compact: bool = False) -> int:
    """Write the network as an ONNX file of plain convolutions, whole or not at all; its size in bytes.

    A compact file holds the spline weights and samples its kernels in the graph.
    """
    from onnxscript import optimizer

    trained = load(checkpoint)
    plain = as_plain(trained.network, compact=compact)
    example = torch.zeros(2, trained.signature.in_channels, *trained.signature.space)
    with _exporter_manners():
        program = torch.onnx.export(
            plain,
            (example,),
            input_names=["images"],
            output_names=["numbers" if trained.signature.kind == "numbers" else "logits"],
            dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            dynamo=True,
            verbose=False,
            optimize=False,
        )
    if program is None:
        raise DataError(f"{file}: the network could not be exported")
    optimizer.optimize(program.model, output_size_limit=CONSTANT)  # the limit keeps kernels out of a compact file
    model = program.model_proto
    for node in model.graph.node:
        del node.metadata_props[:]  # stack traces of this machine
    for name, value in about(trained).items():
        model.metadata_props.add(key=name, value=value)
    data = model.SerializeToString()
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        stream.write(data)
    return len(data)
