"""What depends on the versions installed: Triton's kernels, interpreted where no GPU is, and a gap of the compiler."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from liespline._compiling import without_gaps
from liespline.ops.correlate import triton

PADDING = "TORCHINDUCTOR_COMPREHENSIVE_PADDING"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("which", ["triton", "hopper"])
def test_interpreted_kernels(which: str) -> None:
    # A process of its own: Triton decides between compiler and interpreter when it is first imported.
    file = Path(__file__).with_name(f"interpreted_{which}.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def missing(package: str) -> str:
    raise importlib.metadata.PackageNotFoundError(package)


@pytest.mark.parametrize(
    ("version", "found"),
    [(missing, False), (lambda _: "3.5.1", False), (lambda _: "3.6.0", True), (lambda _: "10.0", True)],
)
def test_missing_and_old_triton_is_not_used(version, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", version)
    assert triton._installed() == found
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(triton, "_INSTALLED", found)
    assert triton.available(torch.device("cpu"), torch.float32) == found


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
def test_the_compilers_gaps_are_off_where_torch_forgets_them_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, version: str, given: str | None, kept: bool
) -> None:
    config: Any = types.ModuleType("config")
    config.comprehensive_padding = True
    monkeypatch.setitem(sys.modules, "torch._inductor.config", config)
    environment = {} if given is None else {PADDING: given}
    monkeypatch.setattr("liespline._compiling.os.environ", environment)
    without_gaps(version)
    assert config.comprehensive_padding is kept
    assert environment.get(PADDING) == (given if kept else "0")
