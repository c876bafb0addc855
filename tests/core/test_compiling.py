"""The compiler's gaps are switched off where torch forgets them, and nowhere else."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from liespline.compiling import without_gaps

NAME = "TORCHINDUCTOR_COMPREHENSIVE_PADDING"


@pytest.mark.parametrize(
    ("version", "given", "kept"),
    [
        ("2.11.0+cu130", None, False),
        ("2.12.1", None, False),
        ("2.13.0+cpu", None, True),
        ("2.20.0", None, True),
        ("2.11.0", "1", True),
    ],
)
def test_gaps(monkeypatch: pytest.MonkeyPatch, version: str, given: str | None, kept: bool) -> None:
    config: Any = types.ModuleType("config")
    config.comprehensive_padding = True
    monkeypatch.setitem(sys.modules, "torch._inductor.config", config)
    environment = {} if given is None else {NAME: given}
    monkeypatch.setattr("liespline.compiling.os.environ", environment)
    without_gaps(version)
    assert config.comprehensive_padding is kept
    assert environment.get(NAME) == (given if kept else "0")
