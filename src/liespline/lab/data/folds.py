"""Which image is in which split: groups stay together, classes are spread evenly, and only names decide."""

import hashlib
from collections.abc import Sequence

import numpy as np

from .files import DataError
from .rows import Array
from .split import SPLITS

PARTS = 7  # five for training, one for validation, one for testing: 71, 14 and 14 percent


def assign(
    names: Sequence[str],
    labels: Sequence[int] | None = None,
    groups: Sequence[str] | None = None,
    *,
    fold: int = 0,
    folds: int = PARTS,
    seed: int = 0,
) -> list[str]:
    """The split of each name. Part `fold` of `folds` tests, the next one validates, the others train.

    Over all folds each name is tested exactly once. No group is in two parts. Parts are filled greedily: each
    group, in an order drawn by its name and the seed, largest first, goes to the part that has fewest of its classes.
    """
    members: dict[str, list[int]] = {}
    for row, name in enumerate(groups or names):
        members.setdefault(name, []).append(row)
    if not 3 <= folds <= len(members):
        what = "groups" if groups else "files"
        raise DataError(
            f"{len(members)} {what} cannot be cut into {folds} parts; from 3 to one part per group are possible"
        )
    if not 0 <= fold < folds:
        raise ValueError(f"fold {fold} is not one of 0 to {folds - 1}")
    classes = np.zeros(len(names), np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    count = int(classes.max(initial=0)) + 1
    held = np.zeros((folds, count))
    part_of = np.zeros(len(names), np.int64)
    totals = np.bincount(classes, minlength=count)
    order = sorted(members, key=lambda name: (-len(members[name]), _draw(seed, name)))
    for name in order:
        own = np.bincount(classes[members[name]], minlength=count)
        part = _emptiest(held, own / totals)
        held[part] += own / totals
        part_of[members[name]] = part
    kinds = {fold: "test", (fold + 1) % folds: "valid"}
    return [kinds.get(int(part), "train") for part in part_of]


def _emptiest(held: Array, own: Array) -> int:
    """The part that holds the smallest share of the classes that are to be added; of equal ones, of all classes."""
    wanted = (held * (own > 0)).sum(1)
    return int(np.lexsort((held.sum(1), wanted))[0])


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def rows_of(split: str, splits: Sequence[str]) -> Array:
    """Row numbers of one split; DataError if it has none."""
    rows = np.flatnonzero([name == split for name in splits])
    if split in SPLITS and not rows.size:
        raise DataError(f"no row is of split {split!r}; every one of {', '.join(SPLITS)} needs some")
    return rows
