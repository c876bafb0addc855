"""Tasks of other packages and files: `module:NAME` and `FILE.py:NAME`."""

import sys
from dataclasses import replace

from ..named import named
from ..settings import ConfigError
from .base import Task


def find_outside(word: str, root: str | None, *, files: bool) -> Task:
    """The task that a module has under a name; its configurations say `module:NAME`, and where the module came from."""
    task, place, source = named("task", word, root, "studies/paper/pcam.py:PCAM", files=files)
    if not isinstance(task, Task):
        others = ", ".join(key for key, value in vars(sys.modules[place]).items() if isinstance(value, Task))
        raise ConfigError(f"task {word}: {source} has no task of that name; it has {others or 'none'}")
    top = source.parents[place.count(".") + (source.name == "__init__.py")]
    return replace(task, defaults=replace(task.defaults, task=f"{place}:{word.rpartition(':')[2]}", task_root=str(top)))
