"""Which image is in which split: groups and copies stay together, classes are spread evenly, only names decide."""

import hashlib
from collections.abc import Sequence

import numpy as np

from .arrays import Array
from .files import DataError
from .split import SPLITS, check_split

PARTS = 7  # five for training, one for validation, one for testing: 71, 14 and 14 percent


def deal(
    names: Sequence[str],
    labels: Array | None,
    groups: Sequence[str] | None,
    marks: Sequence[str],
    fold: int = 0,
    folds: int | None = None,
) -> list[str]:
    """The split of each image of a set that comes without: neither groups nor exact copies (equal `marks`) are in two.

    `labels` are class numbers. Without folds and groups, every class of three different images is in all splits.
    """
    units = together(names, groups, marks)
    if folds is not None or groups is not None or labels is None:
        return assign(names, None if labels is None else labels.tolist(), units, fold=fold, folds=folds)
    _, first, unit = np.unique(units or list(names), return_index=True, return_inverse=True)
    splits = np.full(len(names), "train", object)
    for split in SPLITS[1:]:
        splits[np.isin(unit, stratified(labels[first], split, 0))] = split
    return splits.tolist()


def stratified(labels: Array, split: str, seed: int, shares: Sequence[float] = (0.7, 0.15, 0.15)) -> Array:
    """Row numbers of one split of data that come without: each class cut by `shares`, always the same way.

    Every class with at least three members is present in all three splits.
    """
    chosen = []
    for label in np.unique(labels):
        members = np.random.default_rng([seed, int(label)]).permutation(np.flatnonzero(labels == label))
        held_out = [max(1, round(share * len(members))) for share in shares[1:]]
        valid_from = len(members) - sum(held_out)
        cuts = {"train": (0, valid_from), "valid": (valid_from, valid_from + held_out[0])}
        start, stop = cuts.get(check_split(split), (valid_from + held_out[0], len(members)))
        chosen.append(members[max(start, 0) : max(stop, 0)])
    return np.sort(np.concatenate(chosen))


def assign(
    names: Sequence[str],
    labels: Sequence[int] | None = None,
    groups: Sequence[str] | None = None,
    *,
    fold: int = 0,
    folds: int | None = None,
    seed: int = 0,
) -> list[str]:
    """The split of each name; no group is in two.

    Without `folds`, five sevenths train, one validates and one tests. With them, standard K-fold cross-validation: part
    `fold` tests, and of the rest about a seventh validates. Over all folds each name is tested exactly once.
    """
    units = list(groups or names)
    if folds is None:
        part = _parts(names, labels, units, PARTS, seed, "groups" if groups else "files")
        return [{0: "test", 1: "valid"}.get(int(number), "train") for number in part]
    if not 0 <= fold < folds:
        raise ValueError(f"fold {fold} is not one of 0 to {folds - 1}")
    part = _parts(names, labels, units, folds, seed, "groups" if groups else "files")
    splits = np.where(part == fold, "test", "train").astype(object)
    rest = np.flatnonzero(part != fold).tolist()
    own_labels = None if labels is None else [labels[i] for i in rest]
    chosen = _validation([names[i] for i in rest], own_labels, [units[i] for i in rest], seed)
    splits[np.array(rest)[chosen]] = "valid"
    return [str(split) for split in splits]


def _validation(names: Sequence[str], labels: Sequence[int] | None, units: Sequence[str], seed: int) -> Array:
    """Which of the images that a fold does not test validate it: about a seventh, with an image of every class.

    Where a seventh has not all classes, it is a sixth, and so on.
    """
    wanted = set(labels or (0,))
    for count in range(min(PARTS, len(set(units))), 1, -1):
        part = _parts(names, labels, units, count, seed + 1)
        for number in range(count):
            if {label for label, own in zip(labels or [0] * len(names), part, strict=True) if own == number} == wanted:
                chosen: Array = part == number
                return chosen
    raise DataError(
        f"{len(set(units))} groups beside the test images: a class is in one of them only, and two are needed"
    )


def _parts(
    names: Sequence[str],
    labels: Sequence[int] | None,
    units: Sequence[str],
    parts: int,
    seed: int,
    what: str = "groups",
) -> Array:
    """The part of each name.

    Parts are filled greedily: each unit, in an order drawn by its name and the seed, largest first, goes to the part
    that has fewest of its classes.
    """
    members: dict[str, list[int]] = {}
    for row, name in enumerate(units):
        members.setdefault(name, []).append(row)
    if not min(3, parts) <= parts <= len(members):
        raise DataError(
            f"{len(members)} {what} cannot be cut into {parts} parts; from 3 to one part per group are possible"
        )
    classes = np.zeros(len(names), np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    count = int(classes.max(initial=0)) + 1
    held = np.zeros((parts, count))
    part_of = np.zeros(len(names), np.int64)
    totals = np.bincount(classes, minlength=count)
    order = sorted(members, key=lambda name: (-len(members[name]), _draw(seed, name)))
    for name in order:
        own = np.bincount(classes[members[name]], minlength=count)
        part = _emptiest(held, own / totals)
        held[part] += own / totals
        part_of[members[name]] = part
    return part_of


def together(names: Sequence[str], groups: Sequence[str] | None, marks: Sequence[str]) -> tuple[str, ...] | None:
    """The group of each image when exact copies, images of equal `marks`, join their groups; None if all are alone."""
    units = list(groups or names)
    first = dict(zip(units, units, strict=False))  # of each unit, the one that stands for all it is joined with

    def root(unit: str) -> str:
        while first[unit] != unit:
            unit = first[unit]
        return unit

    seen: dict[str, str] = {}
    for unit, mark in zip(units, marks, strict=True):
        one, other = sorted((root(unit), root(seen.setdefault(mark, unit))))
        first[other] = one  # by name: the order of a table does not matter
    joined = tuple(root(unit) for unit in units)
    return None if groups is None and len(set(joined)) == len(joined) else joined


def _emptiest(held: Array, own: Array) -> int:
    """The part that holds the smallest share of the classes that are to be added; of equal ones, of all classes."""
    wanted = (held * (own > 0)).sum(1)
    return int(np.lexsort((held.sum(1), wanted))[0])


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
