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


def unpack(packed: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays again, (N,) each."""
    stored = {kind: zlib.decompress(base64.b64decode(text)) for kind, text in packed.items() if kind != NAMES}
    return {kind: np.frombuffer(raw, KINDS[kind]) for kind, raw in stored.items()}
