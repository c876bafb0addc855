"""Masks case by case and class by class: how far they overlap, and how far their surfaces are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from ..data import DataError
from ..data.arrays import Array
from ..data.files import collected, csv_line, write_text
from ..data.pair_files import by_stem, numbered, read_mask
from ..data.samples import IGNORE
from ..networks import Signature

Row = dict[str, Any]


def surface_distances(found: Array, true: Array, spacing: Sequence[float]) -> tuple[float, float]:
    """The 95 % Hausdorff distance of two sets of samples, and the mean distance of their surfaces; NaN for no set.

    The surface S(A) are the samples of A that have a neighbour outside of it, or the image's border. With the distances
    D(A, B) = {min over b in S(B) of |a − b| : a in S(A)}, these are max(P₉₅ D(A, B), P₉₅ D(B, A)) and the mean of
    both sets of distances together.
    """
    if not (found.any() and true.any()):
        return math.nan, math.nan
    (box,) = ndimage.find_objects((found | true).astype(np.uint8))
    surfaces = [own & ~ndimage.binary_erosion(own) for own in (found[box], true[box])]
    away = [ndimage.distance_transform_edt(~own, sampling=spacing) for own in surfaces]
    apart = away[1][surfaces[0]], away[0][surfaces[1]]
    return max(float(np.percentile(own, 95)) for own in apart), float(np.concatenate(apart).mean())


def rows_of_case(
    name: str, found: Array, true: Array, classes: Sequence[str], spacing: Sequence[float]
) -> Iterator[Row]:
    """A row for each class but the first, of masks of class numbers; where the truth is to be ignored, nothing counts.

    Distances are in millimetres, those of images in pixels.
    """
    seen, unit = true != IGNORE, "mm" if true.ndim == 3 else "pixels"
    for number, label in enumerate(classes[1:], 1):
        sets = [(own == number) & seen for own in (found, true)]
        both, (predicted, there) = int((sets[0] & sets[1]).sum()), (int(own.sum()) for own in sets)
        shares = (2 * both, predicted + there), (both, there)
        dice, sensitivity = (part / whole if whole else math.nan for part, whole in shares)
        furthest, mean = surface_distances(sets[0], sets[1], spacing)
        yield {
            "image": name, "class": label, "Dice": dice, "sensitivity": sensitivity,
            f"HD95 ({unit})": furthest, f"mean surface distance ({unit})": mean,
        }  # fmt: skip


def write_cases(path: Path, rows: Sequence[Row]) -> list[str]:
    """Write the table, what is undefined left empty; the means of each class in words."""
    names, lines = list(rows[0])[2:], [csv_line(rows[0])]
    for row in rows:
        numbers = ("" if math.isnan(row[name]) else f"{row[name]:.6g}" for name in names)
        lines.append(csv_line([row["image"], row["class"], *numbers]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(lines))
    said = [f"{path}: {len({row['image'] for row in rows}):,} cases; means where they are defined:"]
    for label in dict.fromkeys(row["class"] for row in rows):
        own = {name: [row[name] for row in rows if row["class"] == label] for name in names}
        means = {name: np.nanmean(values) for name, values in own.items() if not np.isnan(values).all()}
        said.append(f"{label}: " + ", ".join(f"{name} {value:.4g}" for name, value in means.items()))
    return said


def cases_of_files(masks: Mapping[str, Path], truth: Path, signature: Signature, problems: list[str]) -> Iterator[Row]:
    """The rows of written masks, by name, against those of the same names in the folder `truth`."""
    others = by_stem(truth, problems, [])
    values = signature.values or range(len(signature.classes))
    for name, file in masks.items():
        with collected(problems):
            if name not in others:
                raise DataError(f"{truth}: has no mask of {name}")
            found, true = read_mask(file), read_mask(others[name])
            if found.values.shape != true.values.shape or not found.same_place(true):
                raise DataError(f"{others[name]}: lies elsewhere than its prediction {file}")
            classes = [numbered(one.values[0], values) for one in (found, true)]
            yield from rows_of_case(name, classes[0], classes[1], signature.classes, found.spacing)


def largest_components(mask: Array) -> Array:
    """Of each class but the first, the largest part that is connected face to face; the others become the first."""
    kept = np.zeros_like(mask)
    for number in range(1, int(mask.max(initial=0)) + 1):
        parts, count = ndimage.label(mask == number)
        if count:
            kept[parts == np.bincount(parts.ravel())[1:].argmax() + 1] = number
    return kept
