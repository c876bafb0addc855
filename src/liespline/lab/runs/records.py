"""The numbers of a run as files: read without trusting that a whole and honest run wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..data.files import DataError, existing
from .old import results_renamed
from .per_image import unpack

# Far above any real run: what is larger is some other file.
MOST_BYTES = 50_000_000
NUMBER = (int, float)
MAYBE = (int, float, type(None))
RESULTS: dict[str, Any] = {
    "scores": {str: NUMBER},
    "images": int,
    "parameters": int,
    "split": str,
    "synthetic": bool,
    "task": str,
    "seconds": NUMBER,
    "upright": NUMBER,  # these two are the demonstration's
    "rotated": NUMBER,
    "data": str,
    "checkpoint_metric": (str, type(None)),
    "train_overlap": int,
    "majority_class_accuracy": NUMBER,
    "sensitivity": {str: NUMBER},
    "sensitivity_interval": {str: [NUMBER]},
    "per_class": {str: {str: NUMBER}},
    "per_tag": {str: {str: NUMBER}},
    "per_column": {str: {str: NUMBER}},
    "undefined": {str: [str]},
    "interval": {str: [NUMBER]},
    "confusion": [[int]],
    "rotated_masks": {str: MAYBE},
    "mistakes": [[NUMBER]],
    "per_image": {str: str},
    "transformed": {str: object},
}
MOVES: dict[str, Any] = {
    "axis": str,
    "labels": [str],
    "accuracy": [NUMBER],
    "mean_accuracy": NUMBER,
    "upright": NUMBER,
    "scores": {str: NUMBER},
    "images": int,
    "change": NUMBER,  # of results of old: over the norm of the output, so never beside the next ones
    "copies": int,
    "relative_output_change": MAYBE,
    "relative_output_change_worst": MAYBE,
    "relative_output_change_on_grid": MAYBE,
    "relative_output_change_between_grid": MAYBE,
    "changed_predictions": NUMBER,
    "interpolation_floor": MAYBE,
}
ACCURACIES = ("axis", "labels", "accuracy", "mean_accuracy")
"""What is there for classes, all of it."""
METRICS = ("epoch", "seconds", "images_per_second", "memory_mib")


def read_results(path: Path, *needed: str) -> dict[str, Any]:
    """The final numbers: none but known ones, each of its kind, and the `needed` ones all there."""
    results = results_renamed(_parsed(_text(existing(path, "the results of a finished run")), str(path)))
    for name in needed:
        if name not in results:
            raise DataError(f"{path}: has no {name!r}; remove it and go on with --resume {path.parent}")
    for name, value in results.items():
        if name not in RESULTS or not _fits(value, RESULTS[name]):
            raise DataError(f"{path}: {name[:80]!r} is {str(value)[:80]!r}, which is no result of a run")
    if "transformed" in results:
        _check_moves(results["transformed"], path)
    try:
        unpack(results.get("per_image", {}), results.get("images", 0))
    except ValueError as error:
        raise DataError(f"{path}: 'per_image' cannot be read: {error}") from error
    return results


def _check_moves(moves: dict[str, Any], path: Path) -> None:
    """Nothing but known numbers of transformed images; a label for each accuracy."""
    for name, value in moves.items():
        if name not in MOVES or not _fits(value, MOVES[name]):
            raise DataError(f"{path}: 'transformed' has {name[:80]} {str(value)[:80]!r}, which is no result of a run")
    there = [name for name in ACCURACIES if name in moves]
    if "images" not in moves or len(there) not in (0, len(ACCURACIES)):
        raise DataError(
            f"{path}: 'transformed' has {', '.join(moves)[:80]}; expected images and {', '.join(ACCURACIES)}"
        )
    if there and (len(moves["labels"]) != len(moves["accuracy"]) or not all(map(_angle, moves["labels"]))):
        raise DataError(f"{path}: 'transformed' has labels {str(moves['labels'])[:80]} that do not go with its numbers")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The epochs' lines; a last one torn by a kill is left out."""
    if not path.exists():
        return []
    rows: list[dict[str, Any]] = []
    lines = _text(path).split("\n")
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            row = _parsed(line, where)
        except DataError:
            if number == len(lines):  # all whole lines end with a line break
                break
            raise
        if not all(isinstance(value, NUMBER) for value in row.values()) or any(name not in row for name in METRICS):
            raise DataError(f"{where}: is {line[:80]!r}; expected the numbers of an epoch")
        if row["epoch"] != len(rows):
            raise DataError(f"{where}: is of epoch {row['epoch']}; expected {len(rows)}, each epoch once")
        rows.append(row)
    return rows


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > MOST_BYTES or not path.is_file():
        raise DataError(f"{path}: has {size:,} bytes or is no plain file; this holds no numbers of a run")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is no JSON ({str(error)[:80]}); it is truncated or damaged") from error
    if not isinstance(values, dict):
        raise DataError(f"{where}: holds {type(values).__name__}; expected names and values")
    return values


def _fits(value: object, kind: Any) -> bool:
    """Whether a value is of a kind: a type, [kind] for lists, {str: kind} for any names, {name: kind} for these."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(item, kind[0]) for item in value)
    if isinstance(kind, dict) and str in kind:
        return isinstance(value, dict) and all(_fits(item, kind[str]) for item in value.values())
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(name in value and _fits(value[name], kind[name]) for name in kind)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _angle(label: str) -> bool:
    try:
        float(label.partition(", ")[0].rstrip("°"))
    except ValueError:
        return False
    return True
