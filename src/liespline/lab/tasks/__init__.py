"""What can be trained: one file per task, with its data, augmentation, network and score together."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..settings import one_of
from .defaults import SUMMARIES

if TYPE_CHECKING:
    from .base import Task

__all__ = ["SUMMARIES", "find_task"]


def find_task(name: str) -> Task:
    """The task of that name; its file is imported only now."""
    one_of("task", name, SUMMARIES)
    task: Task = importlib.import_module(f".{name}", __package__).TASK
    return task
