"""The file of a trained network: whole or absent, checked when read, never unpickled."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ...models.kernels import SPLINES
from ..data.files import DataError, existing, replacing


def save_weights(path: Path, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Write tensors and what they are into one safetensors file, with a digest of both; equal ones, equal bytes."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    text = json.dumps(description)
    with replacing(path) as stream:
        # One entry: safetensors writes several in any order, and the bytes would differ from run to run.
        stream.write(save(tensors, {"liespline": f"{_digest(tensors, text)} {text}"}))


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description from a file of `save_weights`; a damaged or foreign file is refused."""
    path = existing(path, "a trained network (model.safetensors)")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            if "liespline" not in metadata:
                raise DataError(
                    f"{path}: holds tensors, but not of a network trained by `liespline train`; "
                    "`liespline.models.from_pretrained` loads ready networks"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        digest, _, text = metadata["liespline"].partition(" ")
        if _digest(tensors, text) != digest:
            raise DataError(f"{path}: its contents do not match their digest; the file is damaged")
        description = json.loads(text)
    except (SafetensorError, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: is not a whole file of a trained network ({first_line(error)})") from error
    return tensors, description


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def first_line(error: Exception) -> str:
    """What an error says, short."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def check_fit(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    """Refuse parameters that are not those of a network, naming the first that differs.

    Which splines on H they are of is compared by the network; files of 0.2 do not say it.
    """
    for name in (name for name in (*expected, *found) if not name.endswith(f".{SPLINES}")):
        shapes = [tuple(values[name].shape) if name in values else None for values in (found, expected)]
        if shapes[0] != shapes[1]:
            has, wanted = ("no such tensor" if shape is None else f"shape {shape}" for shape in shapes)
            raise DataError(f"{where}: {name}: it has {has}, the network has {wanted}")
