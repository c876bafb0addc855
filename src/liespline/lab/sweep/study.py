"""The file that says what a sweep is: `study.yaml` beside its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..data.files import write_text
from ..paper.seed_averages import origin
from ..runs.folder import Run, git_commit
from .records import RECORDS, SETS


def write_study(folder: Path, task: str, chosen: str, seeds: int, settings: Mapping[str, Any]) -> Path:
    """Write what the last command asked for, but for where the data are: that is everyone's own.

    The words of `about`, added by hand, stay; a record brings its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    asked = {name: value for name, value in settings.items() if value is not None and name != "data"}
    study = {"task": task, "set": chosen, "seeds": seeds, "settings": asked, "commit": git_commit()}
    about = _about(path) or (SETS[chosen].about if task == RECORDS else None)
    write_text(path, yaml.safe_dump(study | ({"about": about} if about else {}), sort_keys=False, allow_unicode=True))
    return path


def finished_runs(folder: Path) -> dict[str, list[Run]]:
    """The finished runs of a sweep by network, each network's by seed."""
    found: dict[str, list[Run]] = {}
    for file in sorted(folder.glob("runs/*/seed-*/results.json")):
        found.setdefault(file.parents[1].name, []).append(Run(file.parent))
    return found


def timed_alike(found: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Those on the machine that most were on: minutes of one machine say nothing beside those of another."""
    machines = {run.path: origin(run.path / "environment.json")["machine"] for runs in found.values() for run in runs}
    usual = next((machine for machine, _ in Counter(machines.values()).most_common(1)), None)
    return {name: [run for run in runs if machines[run.path] == usual] for name, runs in found.items()}


def _about(path: Path) -> str | None:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    about = found.get("about") if isinstance(found, dict) else None
    return about if isinstance(about, str) else None
