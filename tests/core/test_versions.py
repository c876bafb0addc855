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

from liespline import functional, nn  # noqa: F401 (what they compute with is known to `trust` once imported)
from liespline._compiling import without_gaps
from liespline.ops import trust

PADDING = "TORCHINDUCTOR_COMPREHENSIVE_PADDING"


@pytest.mark.skipif((trust.installed() or (0,)) < (3, 6), reason="the interpreter of Triton before 3.6 is another")
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
    [
        (missing, ["Triton is not installed"] * 4),
        (lambda _: "3.1.0", ["Triton 3.1 is installed"] * 4),
        (lambda _: "3.2.0", ["3.4 or later is needed", "3.6 or later is needed", "3.3 or later", ""]),
        (lambda _: "3.5.1", ["", "Triton 3.5 is installed, 3.6 or later", "", ""]),
        (lambda _: "3.7.1", [""] * 4),
        (lambda _: "3.10.0+git", [""] * 4),
    ],
    ids=["none", "3.1", "3.2", "3.5", "3.7", "3.10"],
)
def test_kernels_say_what_the_installed_triton_lacks(version, found: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", version)
    kinds, installed = ("triton", "hopper", "depthwise", "norm"), trust.installed.__wrapped__()
    said = [trust.KINDS[kind].lacks(installed) for kind in kinds]
    assert all(part in one and (part or not one) for part, one in zip(found, said, strict=True))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_for_a_gpu_say_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "installed", lambda: (3, 6))  # with an old Triton, that is what is said
    trust._missing.cache_clear()
    assert "the input is on 'cpu', they run on NVIDIA GPUs" in trust.off("norm", torch.device("cpu"), torch.float32)
    assert "compute capability 0.0" in trust._missing("norm", torch.device("cuda", 7), torch.float32)
    assert "computes in float64, they take" in trust._missing("triton", torch.device("cuda", 7), torch.float64)


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
