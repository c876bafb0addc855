"""Scores of single test images in the results of a run, for comparisons of two networks on the same images."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..data.arrays import Array

KINDS = {"true": "<u2", "predicted": "<u2", "log_odds": "<f2", "found": "<f2", "dice": "<f4"}
"""What can be known of an image, and how it is stored: zlib and base64 around the bytes of one number per image.

Classes have their true and predicted number, and log p/(1 − p) of the true class: a float16 has three digits of it,
where those of p itself would end at 0.9995. Landmarks have the share that was found, masks their mean Dice.
"""
NAMES = "names_hash"
MOST_BYTES = 50_000_000
"""What no honest array comes near: a damaged file must not fill the memory."""


def pack(names: Sequence[str], **values: Tensor) -> dict[str, str]:
    """One array per kind, (N,), with a fingerprint of the names of the images, in their order."""
    kept = {
        kind: value.cpu().double().clamp(-65504, 65504).numpy().astype(KINDS[kind]) for kind, value in values.items()
    }
    packed = {kind: base64.b64encode(zlib.compress(array.tobytes(), 9)).decode() for kind, array in kept.items()}
    return {NAMES: hashlib.blake2b(json.dumps(list(names)).encode(), digest_size=5).hexdigest()} | packed


def pack_classes(names: Sequence[str], outputs: Tensor, targets: Tensor) -> dict[str, str]:
    """What is kept of logits (N, classes) and the true classes (N,)."""
    logits, at = outputs.double(), targets.unsqueeze(1)
    others = logits.scatter(1, at, float("-inf")).logsumexp(1)
    return pack(names, true=targets, predicted=outputs.argmax(1), log_odds=logits.gather(1, at)[:, 0] - others)


def unpack(packed: Mapping[str, Any], images: int) -> dict[str, Array]:
    """The arrays again, (images,) each; ValueError if they are of anything else."""
    found = {}
    for kind, text in packed.items():
        if kind == NAMES:
            continue
        if kind not in KINDS:
            raise ValueError(f"{kind[:80]!r} is not known of an image; known are {', '.join(KINDS)}")
        size = images * np.dtype(KINDS[kind]).itemsize
        try:
            raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), min(size, MOST_BYTES) + 1)
        except zlib.error as error:
            raise ValueError(f"{kind} is damaged ({error})") from error
        if len(raw) != size:
            raise ValueError(f"{kind} is not of {images:,} images")
        found[kind] = np.frombuffer(raw, KINDS[kind])
    return found
