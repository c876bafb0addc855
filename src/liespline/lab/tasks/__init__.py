"""What can be trained: one file per task, with its data, augmentation, networks and score together."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..settings import SETTINGS, Config, one_of, renamed
from .defaults import DEFAULTS

if TYPE_CHECKING:
    from .base import Task

__all__ = ["find_task", "of_other_tasks"]
OWN = "module:NAME"


def find_task(task: str | Config, root: str | None = None) -> Task:
    """The task of a name, of `module:NAME`, of `FILE.py:NAME`, or of a configuration; its file is imported only now.

    Modules are looked for where Python does, in `root`, and in the current directory. A configuration names a module
    and its root, and never a file.
    """
    if isinstance(task, Config):
        word, root, files = task.task, task.task_root, False
    else:
        word, files = task, True
    word = renamed.TASKS.get(word, word)
    if ":" in word:
        from .outside import find_outside

        return find_outside(word, root, files=files)
    one_of("task", word, [*DEFAULTS, OWN])
    return importlib.import_module(f".{word}", __package__).TASK


def of_other_tasks(config: Config) -> list[str]:
    """The special settings that do nothing for a task, and that nobody changed: its runs do not write them down."""
    takes = find_task(config).options
    return [n for n, one in SETTINGS.items() if one.special and n not in takes and config[n] == one.default]
