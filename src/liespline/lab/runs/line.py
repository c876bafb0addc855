"""A run as one line of JSON: what is kept of it beside the code when its folder is gone."""

import json
import os
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..data.files import DataError, lock, replacing
from ..settings import ConfigError
from .folder import Run

KEPT_PACKAGES = ("liespline", "torch")
LEFT_OUT = ("task", "mistakes", "majority_class_accuracy", "sensitivity", "sensitivity_interval")
"""Of the results: what the configuration or the confusion matrix says too, and the pictures of mistakes."""
DECIMALS, IN_LISTS = 10, 7
"""Of scores; of intervals and scores per angle. What lies half-way between two roundings stays on its side."""


def line_of(run: Run, study: str) -> dict[str, Any]:
    """The line of a run in `STUDY/runs/NETWORK/seed-N`, finished or not.

    `environment`, `config` and `results` are those of the run's files, without what `KEPT_PACKAGES` and `LEFT_OUT`
    leave out, settings that are null, and folders up to the root of the disk; `training` is what `training_of` says of
    the epochs.
    """
    config = yaml.safe_load(run.config_file.read_text(encoding="utf-8"))
    found = json.loads((run.path / "environment.json").read_text(encoding="utf-8"))
    commit, changed, _ = (found["commit"] or "").partition("+")
    environment = {
        "command": shlex.join(map(_portable, found["command"])),
        "commit": commit or None,
        "uncommitted": bool(changed),
        "machine": found["machine"],
        "python": found["python"],
        "packages": {name: found["packages"][name] for name in KEPT_PACKAGES if name in found["packages"]},
    }
    results = run.read_results() if run.finished else {}
    return {
        "study": study,
        "network": run.path.parent.name,
        "seed": config["seed"],
        "finished": run.finished,
        "environment": environment,
        "config": _set(config),
        "training": training_of(run.read_metrics()),
        "results": {name: _rounded(value) for name, value in results.items() if name not in LEFT_OUT},
    }


def training_of(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is kept of the epochs: their number, seconds, median images/s, and the peak memory in MiB.

    Of each validation score: the best value with its epoch, and the means of the last 5 and 10 epochs that were
    validated, if there are so many.
    """
    scores = {}
    for name in sorted({name for epoch in epochs for name in epoch if name.startswith("valid_")} - {"valid_loss"}):
        values = {int(epoch["epoch"]): float(epoch[name]) for epoch in epochs if name in epoch}
        best, last = max(values, key=values.__getitem__), list(values.values())
        means = {f"last_{n}": statistics.fmean(last[-n:]) for n in (5, 10) if len(last) >= n}
        scores[name.removeprefix("valid_")] = _rounded({"best": values[best], "epoch": best, **means})
    kept = {"epochs": len(epochs), "seconds": sum(epoch["seconds"] for epoch in epochs), "valid": scores}
    if epochs:
        kept["images_per_second"] = statistics.median(epoch["images_per_second"] for epoch in epochs)
        kept["memory_mib"] = max(epoch["memory_mib"] for epoch in epochs)
    return kept


def read(path: Path) -> list[dict[str, Any]]:
    """All lines of a file of results, those of runs and those that say what a study is."""
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: is no JSON ({error}); bring the file back from git") from error
        if not isinstance(line, dict) or "study" not in line:
            raise DataError(f"{path}, line {number}: {text[:80]!r} names no study; expected one JSON object per run")
        lines.append(line)
    return lines


def append(path: Path, line: Mapping[str, Any], uncommitted: bool = False) -> None:
    """Add a line to a file of results, whole or not at all, while no other process does.

    The same line is added once. Refused are another one of the same study, network and seed, one that was scored on
    other data than the runs of its study, and, unless told, one of a source with uncommitted changes.
    """
    if line.get("environment", {}).get("uncommitted"):
        check_committed(line["environment"]["commit"] + "+", uncommitted)
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock(path.with_name(path.name + ".lock"), wait=True):
        lines = read(path) if path.exists() else []
        if line in lines:
            return
        name, data = f"{line.get('network')} seed {line.get('seed')}", line.get("results", {}).get("data")
        for other in (one for one in lines if one["study"] == line["study"] and "network" in one):
            if (other["network"], other["seed"]) == (line.get("network"), line.get("seed")):
                raise DataError(f"{path}: has {name} of {line['study']} already; name another file with --results")
            there = other.get("results", {}).get("data")
            if data and there and data != there:
                raise DataError(f"{path}: its runs have the data {there}, {name} has {data}; name another --results")
        with replacing(path) as stream:
            for each in (*lines, line):
                stream.write(json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def check_committed(commit: str | None, told: bool) -> None:
    """Refuse results of a source that no commit holds, as `git_commit` names it, unless the user says so."""
    if commit and "+" in commit and not told:
        raise ConfigError(
            f"the source differs from commit {commit.partition('+')[0][:7]}: commit the changes first, so that others "
            "can repeat the runs, or say --uncommitted, and the results will say so"
        )


def _set(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the settings that are null, which they are where they are absent."""
    there = {name: value for name, value in config.items() if value is not None}
    return {name: _set(value) if isinstance(value, Mapping) else _portable(value) for name, value in there.items()}


def _portable(value: Any) -> Any:
    """Where data lie is everyone's own: of a path from the root of a disk, the last part stays."""
    return Path(value).name if isinstance(value, str) and os.path.isabs(value) else value


def _rounded(value: Any, decimals: int = DECIMALS) -> Any:
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, Mapping):
        return {name: _rounded(item, decimals) for name, item in value.items()}
    return [_rounded(item, IN_LISTS) for item in value] if isinstance(value, list) else value
