"""Which image is in which split: groups and copies stay together, classes are spread evenly, only names decide."""

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .arrays import Array
from .files import DataError
from .split import SPLITS, check_split

PARTS = 7  # five for training, one for validation, one for testing: 71, 14 and 14 percent


def deal(
    names: Sequence[str],
    labels: Array | None,
    groups: Sequence[str] | None,
    marks: Sequence[str] | Array,
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
    units, what = np.array(groups or names), "groups" if groups else "files"
    classes = np.zeros(len(names), np.int64) if labels is None else np.asarray(labels, np.int64)
    part = _parts(classes, units, folds or PARTS, seed, what)
    if folds is None:
        return [{0: "test", 1: "valid"}.get(int(number), "train") for number in part]
    if not 0 <= fold < folds:
        raise ValueError(f"fold {fold} is not one of 0 to {folds - 1}")
    splits = np.where(part == fold, "test", "train").astype(object)
    rest = np.flatnonzero(part != fold)
    splits[rest[_validation(classes[rest], units[rest], seed)]] = "valid"
    return [str(split) for split in splits]


def _validation(classes: Array, units: Array, seed: int) -> Array:
    """Which of the images that a fold does not test validate it: about a seventh, with an image of every class.

    Where a seventh has not all classes, it is a sixth, and so on.
    """
    groups = len(np.unique(units))
    for count in range(min(PARTS, groups), 1, -1):
        part = _parts(classes, units, count, seed + 1)
        for number in range(count):
            if set(classes[part == number]) == set(classes):
                return np.asarray(part == number)
    raise DataError(f"{groups} groups beside the test images: a class is in one of them only, and two are needed")


def _parts(classes: Array, units: Array, parts: int, seed: int, what: str = "groups") -> Array:
    """The part of each image, of those with these classes and units.

    Parts are filled greedily: each unit, in an order drawn by its name and the seed, largest first, goes to the part
    that has fewest of its classes.
    """
    names, unit_of = np.unique(units, return_inverse=True)
    if not min(3, parts) <= parts <= len(names):
        raise DataError(
            f"{len(names)} {what} cannot be cut into {parts} parts; from 3 to one part per group are possible"
        )
    known, class_of = np.unique(classes, return_inverse=True)
    shares = np.zeros((len(names), len(known)))
    np.add.at(shares, (unit_of, class_of), 1)
    shares /= np.bincount(class_of)
    sizes, part_of, held = np.bincount(unit_of), np.zeros(len(names), np.int64), np.zeros((parts, len(known)))
    for unit in sorted(range(len(names)), key=lambda unit: (-sizes[unit], _draw(seed, str(names[unit])))):
        # The part that holds the smallest share of the unit's classes; of equal ones, of all classes.
        part_of[unit] = np.lexsort((held.sum(1), (held * (shares[unit] > 0)).sum(1)))[0]
        held[part_of[unit]] += shares[unit]
    return part_of[unit_of]


def together(
    names: Sequence[str], groups: Sequence[str] | None, marks: Sequence[str] | Array
) -> tuple[str, ...] | None:
    """The group of each image when exact copies, images of equal `marks`, join their groups; None if all are alone."""
    units, unit_of = np.unique(list(groups or names), return_inverse=True)
    copies, copy_of = np.unique(list(marks), return_inverse=True)
    links = coo_array((np.ones(len(unit_of)), (unit_of, copy_of + len(units))), (len(units) + len(copies),) * 2)
    joined_of = connected_components(links, directed=False)[1][: len(units)]
    _, first = np.unique(joined_of, return_index=True)  # by name: the order of a table does not matter
    joined = tuple(units[first[joined_of[unit]]] for unit in unit_of)
    return None if groups is None and len(set(joined)) == len(joined) else tuple(map(str, joined))


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
