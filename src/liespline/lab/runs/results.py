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
SCORES = {str: NUMBER}
LIMITS = {str: [NUMBER]}
TRANSFORMED: dict[Any, Any] = {
    "axis": str, "labels": [str], "accuracy": [NUMBER], "mean_accuracy": NUMBER, "upright": NUMBER, "scores": SCORES,
    "images": int, "copies": int, "relative_output_change": MAYBE, "relative_output_change_worst": MAYBE,
    "relative_output_change_on_grid": MAYBE, "relative_output_change_between_grid": MAYBE,
    "changed_predictions": NUMBER, "interpolation_floor": MAYBE,
    "change": NUMBER,  # of results of old: over the norm of the output, so never beside the ones above
}  # fmt: skip
RESULTS: dict[Any, Any] = {
    "scores": SCORES, "images": int, "parameters": int, "split": str, "synthetic": bool, "task": str, "seconds": NUMBER,
    "data": str, "checkpoint_metric": (str, type(None)), "train_overlap": int, "majority_class_accuracy": NUMBER,
    "sensitivity": SCORES, "sensitivity_interval": LIMITS, "interval": LIMITS, "undefined": {str: [str]},
    "per_class": {str: SCORES}, "per_tag": {str: SCORES}, "per_column": {str: SCORES}, "confusion": [[int]],
    "rotated_masks": {str: MAYBE}, "mistakes": [[NUMBER]], "transformed": TRANSFORMED,
    "per_image": {str: str},
    "upright": NUMBER, "rotated": NUMBER,  # the demonstration's
}  # fmt: skip
"""Every result by its name, and what it is; a new one is written down here."""
ACCURACIES = ("axis", "labels", "accuracy", "mean_accuracy")
"""What is there for classes, all of it."""
METRICS = ("epoch", "seconds", "images_per_second", "memory_mib")


def read_results(path: Path, *needed: str) -> dict[str, Any]:
    """The final numbers: none but known ones, each of its kind, and the `needed` ones all there."""
    results = results_renamed(_parsed(_text(existing(path, "the results of a finished run")), str(path)))
    for name in needed:
        if name not in results:
            raise DataError(f"{path}: has no {name!r}; remove it and resume with --resume {path.parent}")
    for name, value in results.items():
        if not _fits({name: value}, RESULTS):
            raise DataError(f"{path}: {name[:80]!r} is {str(value)[:80]!r}, which is no result of a run")
    _check_transformed(results.get("transformed"), path)
    try:
        unpack(results.get("per_image", {}), results.get("images", 0))
    except ValueError as error:
        raise DataError(f"{path}: 'per_image' cannot be read: {error}") from error
    return results


def _check_transformed(found: dict[str, Any] | None, path: Path) -> None:
    """All or none of the accuracies, and for each a label that begins with an angle or a number."""
    if found is None:
        return
    there = [name for name in ACCURACIES if name in found]
    if "images" not in found or len(there) not in (0, len(ACCURACIES)):
        names = ", ".join(found)[:80]
        raise DataError(f"{path}: 'transformed' has {names}; expected images and {', '.join(ACCURACIES)}")
    try:
        places = [float(label.partition(", ")[0].rstrip("°")) for label in found.get("labels", [])]
    except ValueError:
        places = []
    if len(places) != len(found.get("accuracy", [])):
        raise DataError(f"{path}: 'transformed' has labels {str(found['labels'])[:80]} that do not go with its numbers")


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


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind: a type, [kind] for lists, {str: kind} for any names, {name: kind} for these."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(item, kind[0]) for item in value)
    if isinstance(kind, dict):
        of = {name: kind.get(str, kind.get(name)) for name in value} if isinstance(value, dict) else None
        return of is not None and all(own is not None and _fits(value[name], own) for name, own in of.items())
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
