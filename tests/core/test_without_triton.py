"""Where Triton is missing or too old its kernels are not used, whatever else is asked for."""

import importlib.metadata

import pytest
import torch

from liespline.paths import triton


def missing(package: str) -> str:
    raise importlib.metadata.PackageNotFoundError(package)


@pytest.mark.parametrize(
    ("version", "found"),
    [(missing, False), (lambda _: "3.5.1", False), (lambda _: "3.6.0", True), (lambda _: "10.0", True)],
)
def test_missing_and_old_versions(version, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", version)
    assert triton._installed() == found


def test_kernels_are_not_available_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for installed in (True, False):
        monkeypatch.setattr(triton, "_INSTALLED", installed)
        assert triton.available(torch.device("cpu"), torch.float32) == installed
