"""Readers of a run's own files on bytes and values that Hypothesis makes up: read, or refused in words."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.hostile_files import CONFIG, KINDS
from liespline.lab.data import DataError
from liespline.lab.settings import Config, ConfigError

READERS = ("checkpoint", "model", "config")
EDITS = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


class Refusal(str):
    """What was said in place of an answer."""


def read_or_refusal(read):
    try:
        return read()
    except (DataError, ConfigError) as error:
        return Refusal(error)


@cache
def honest(kind: str) -> tuple[dict[str, bytes], str]:
    """All files of an honest folder, and what is read from it."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        KINDS[kind].make(root)
        return {path.name: path.read_bytes() for path in root.iterdir()}, repr(KINDS[kind].read(root))


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=60)
@given(edits=EDITS, cut=st.floats(0, 1) | st.none())
def test_edited_bytes(kind, edits, cut):
    files, expected = honest(kind)
    raw = bytearray(files[KINDS[kind].file])
    for place, new in edits:
        start = int(place * (len(raw) - 1))
        raw[start : start + len(new)] = new
    if cut is not None:
        raw = raw[: int(cut * len(raw))]
    with TemporaryDirectory() as folder:
        for name, whole in files.items():
            (Path(folder) / name).write_bytes(raw if name == KINDS[kind].file else whole)
        found = read_or_refusal(lambda: repr(KINDS[kind].read(Path(folder))))
    # Weights carry digests: what is accepted is what was written. Text is its owner's to edit.
    assert isinstance(found, Refusal) or found == expected or kind == "config"


@settings(max_examples=150)
@given(st.data())
def test_made_up_settings(data):
    """A configuration with some values replaced by anything is checked, or refused by name."""
    values = yaml.safe_load(CONFIG.to_yaml())
    for _ in range(data.draw(st.integers(1, 3))):
        part = values[data.draw(st.sampled_from(["network", "training"]))] if data.draw(st.booleans()) else values
        if isinstance(part, dict):
            part[data.draw(st.sampled_from(sorted(part) or ["elements"]) | st.text(max_size=5))] = data.draw(VALUES)
    found = read_or_refusal(lambda: Config.from_dict(values, "here"))
    assert found.startswith("here") if isinstance(found, Refusal) else replace(found) == found
