"""A trained network as an ONNX file for other runtimes, with all that is needed to use it there."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ... import export as as_plain
from ..data.files import replacing
from ..data.samples import GREY
from ..data.scans.reading import TAILS
from ..runs.trained import Trained, load
from ..screen import quiet

CONSTANT = 1024
"""How many numbers a constant has at most that is computed when an ONNX file is written."""


def about(trained: Trained) -> dict[str, str]:
    """What one needs to know to use the network elsewhere: what comes out, and what is done to images, in this order.

    Values are words or JSON; what does not apply is left out.
    """
    signature, known = trained.signature, trained.value_range
    found: dict[str, Any] = {"task": trained.config.task, "outputs": signature.kind, "classes": signature.classes}
    found["shape"] = [signature.in_channels, *signature.space]
    found |= _of_scans(trained) if signature.spacing is not None else _of_arrays(trained)
    if len(signature.space) == 3 and (signature.spacing is not None or trained.config.size is not None):
        found["box"] = "the middle, (own − wanted) // 2 samples cut or added before; each channel's lowest value around"
    if known is not None:
        found["training_range"] = asdict(known)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}


def _of_arrays(trained: Trained) -> dict[str, Any]:
    """How images come in, and volumes without a spacing."""
    signature, known, found = trained.signature, trained.value_range, dict[str, Any]()
    if len(signature.space) == 2:
        deep = known is not None and known.dtype == "uint16"
        found = {"orientation": "upright, by the EXIF orientation", "background": "transparent pixels shown on white"}
        found["largest"] = 65535 if deep else 255  # 8-bit images of a 16-bit set are stretched first
        found |= trained.preparation()
        if signature.in_channels == 1:
            found |= {"channels": "grey; of colours, their sum with these weights, rounded", "grey": GREY}
        if signature.in_channels == 3:
            found["channels"] = "red, green, blue; grey three times"
    return found | {"scaling": "unsigned integers divided by the largest of their type, floats as they are"}


def _of_scans(trained: Trained) -> dict[str, Any]:
    """How volumes with a spacing come in."""
    window, found = trained.config.intensity_range, dict[str, Any](axes="right, forward, up (RAS+)")
    if window:
        found |= {"intensity_range": window, "scaling": f"from {window[0]} to {window[1]} mapped to 0 to 1, and cut"}
    else:
        way = "less its mean, divided by its standard deviation, channel by channel"
        found |= {
            "percentiles": TAILS,
            "scaling": f"each volume cut to its percentiles {TAILS[0]} and {TAILS[1]}, {way}",
        }
    found["spacing_mm"] = trained.signature.spacing
    found["resampling"] = "linear about the centre, weights max(0, 1 − |x| / max(1, step)) of x voxels, which sum to 1"
    return found


def export_onnx(checkpoint: Path, file: Path, *, compact: bool = False) -> int:
    """Write the network as an ONNX file of plain convolutions, whole or not at all; its size in bytes.

    A compact file holds the spline weights and samples its kernels in the graph.
    """
    from onnxscript import optimizer

    trained = load(checkpoint)
    plain = as_plain(trained.network, compact=compact)
    example = torch.zeros(2, trained.signature.in_channels, *trained.signature.space)
    with quiet(["torch.onnx"], [""]):
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
    assert program is not None  # with dynamo there is one
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
