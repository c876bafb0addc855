"""The task of one's own that the docs show is a task: it loads, and a network learns from it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from liespline.lab import tasks
from liespline.lab.settings import Config
from liespline.lab.tasks import defaults, find_task
from liespline.lab.tasks.networks import Signature

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "runs.md"


def test_the_task_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```text\n(\"{3}Stripes.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setitem(defaults.DEFAULTS, "stripes", Config("stripes").updated(n_h=4, epochs=1))
    monkeypatch.setitem(defaults.SUMMARIES, "stripes", "stripes of two widths")
    module = ModuleType("liespline.lab.tasks.stripes")
    module.__package__ = tasks.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, str(PAGE), "exec"), module.__dict__)

    task = find_task("stripes")
    images, labels = task.load(task.defaults, "train").__getitems__(list(range(16)))
    assert images.shape == (16, 1, 24, 24)
    assert set(labels.tolist()) == {0, 1}
    assert not torch.equal(images, task.load(task.defaults, "valid").__getitems__(list(range(16)))[0])
    signature = Signature.of(task.load(task.defaults, "train"))
    assert task.make(task.defaults, signature)(images.float() / 255).shape == (16, 2)
