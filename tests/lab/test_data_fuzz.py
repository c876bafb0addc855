"""Every reader of data on files with flipped, cut and repeated bytes: it reads them or says what is wrong."""

import numpy as np
import pytest

from lab.hostile_files import KINDS
from liespline.lab.data import DataError

TRIES = 40
OF_RUNS = ("checkpoint", "model", "config", "results", "metrics")


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some flipped (mostly near the ends, where headers and tables are), cut off, or repeated."""
    out = bytearray(raw)
    kind = rng.integers(4)
    if kind == 0:
        return bytes(out[: rng.integers(len(out))])
    if kind == 1:
        start = int(rng.integers(len(out)))
        return bytes(out[:start] + out[start : start + 64] * 2 + out[start:])
    for _ in range(rng.integers(1, 5)):
        near = int(rng.integers(min(len(out), 2000)))
        out[near if rng.random() < 0.6 else len(out) - 1 - near] = int(rng.integers(256))
    return bytes(out)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_RUNS])
def test_damaged_files(tmp_path, kind):
    make, name, read = KINDS[kind].make, KINDS[kind].file, KINDS[kind].read
    make(tmp_path)
    read(tmp_path)
    refusals, path = [], tmp_path / name
    whole = path.read_bytes()
    for seed in range(TRIES):
        path.write_bytes(damaged(whole, np.random.default_rng(seed)))
        try:
            read(tmp_path)
        except DataError as error:
            refusals.append(str(error))
        except Exception as error:
            pytest.fail(f"damage {seed} to {path.name}: {type(error).__name__}: {error}")
    assert len(refusals) >= TRIES // 8, "the damage is real"
    assert all(tmp_path.name in message for message in refusals), "each message names the file"
    path.write_bytes(whole)
    read(tmp_path)
