"""Checkpoints, weights, configurations and numbers made by hand to hurt: code, bombs, sizes that are not there."""

import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from .hostile_damage import Bomb, marker
from .hostile_files import CONFIG, SIGNATURE, describe

GIGA = 10**9
Crafted = Callable[[Path], None]


def text(content: str) -> Crafted:
    return lambda path: path.write_text(content)


def raw(content: Callable[[], bytes]) -> Crafted:
    return lambda path: path.write_bytes(content())


def zipped(*members: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Crafted:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", how) as archive:
            for name, body in members:
                archive.writestr(name, body)

    return make


def checkpoint(state: Callable[[Path], object]) -> Crafted:
    return lambda path: torch.save(state(path), path)


def safetensors(header: dict | bytes, body: bytes = b"", length: int | None = None) -> Crafted:
    packed = header if isinstance(header, bytes) else json.dumps(header).encode()
    return lambda path: path.write_bytes(struct.pack("<Q", len(packed) if length is None else length) + packed + body)


def model(config: dict | None = None, signature: dict | None = None, tensors: dict | None = None) -> Crafted:
    """A file with a right digest whose description asks for something monstrous."""
    about = asdict(CONFIG)
    about["network"] |= config or {}
    shape = asdict(SIGNATURE) | (signature or {})
    return lambda path: describe(path, tensors or {"w": torch.zeros(1)}, about, shape)


def network(**settings: object) -> Crafted:
    return text(f"task: digits\nnetwork: {json.dumps(settings)}\n")


def training(**settings: object) -> Crafted:
    return text(f"task: digits\ntraining: {json.dumps(settings)}\n")


LAUGHS = "a: &a [x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)
RUNS: dict[str, dict[str, Crafted]] = {
    "checkpoint": {
        "code in the archive": checkpoint(lambda p: {"state_dict": Bomb(marker(p)), "epoch": 1}),
        "code without archive": raw(lambda: pickle.dumps(Bomb(Path("CODE-HAS-RUN")))),
        "no epoch": checkpoint(lambda p: {"state_dict": {}}),
    },
    "model": {
        "header of 2^60 bytes": safetensors({}, length=2**60),
        "10^9 rows": safetensors({"w": {"dtype": "F32", "shape": [GIGA, 9], "data_offsets": [0, 4]}}, bytes(4)),
        "offsets outside": safetensors(
            {"w": {"dtype": "F32", "shape": [1], "data_offsets": [GIGA, GIGA + 4]}}, bytes(4)
        ),
        "huge image": model({}, {"space": [GIGA, GIGA]}),
        "no classes": model({}, {"classes": []}),
        "other weights": model({}, {}, {"0.weight": torch.zeros(3, 3)}),
        "unknown task": lambda p: describe(p, {"w": torch.zeros(1)}, asdict(CONFIG) | {"task": "../../etc"}),
    },
    "config": {
        "code": text("!!python/object/apply:pathlib.Path.touch [CODE-HAS-RUN]"),
        "code in a value": text("task: !!python/object/apply:os.system ['touch CODE-HAS-RUN']\n"),
        "laughs": text(LAUGHS),
        "deep": text("[" * 50_000),
        "unknown setting": text("task: digits\nshell: rm\n"),
        "task a path": text("task: ../../digits\n"),
        "10^9 rotations": network(elements=GIGA),
        "words for numbers": network(elements="many"),
        "not a number": text("task: digits\ntraining: {lr: .nan}\n"),
        "precision": training(precision="8-bit"),
        "negative epochs": training(epochs=-3),
    },
}
