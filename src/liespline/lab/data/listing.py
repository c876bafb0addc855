"""Which files a set has, their labels, and their splits: as folders or a table say, or dealt out by name alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..settings import one_of
from .arrays import Array
from .files import DataError, some
from .split import ALL, SPLITS
from .store import digest, file_key

FEWEST = 3  # one per class for each of train, valid and test
PARTS = 7  # five for training, one for validation, one for testing: 71, 14 and 14 percent
SPLIT_FOLDERS = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}


class Samples(NamedTuple):
    """What is looked for: what to call it, in which formats, and how to know it."""

    noun: str
    formats: str
    fits: Callable[[Path], bool]


@dataclass(frozen=True)
class Listing:
    """Files with what is known about them.

    `kind` "classes": one class per file, targets (N,) numbers of `labels`. "tags": any number of `labels` per file,
    targets (N, labels) of 0 and 1. "numbers": measurements `labels`, targets (N, labels). Without labels, as for masks,
    it says splits and groups alone. `splits` is None where we deal files out. `problems` are those of the folders.
    """

    files: Sequence[Path]
    names: Sequence[str]
    kind: str
    labels: tuple[str, ...]
    targets: Array
    splits: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    problems: Sequence[str] = ()

    @property
    def key(self) -> str:
        """What changes whenever a file is added, removed, renamed or replaced."""
        return "\n".join(f"{name} {file_key(file)}" for name, file in zip(self.names, self.files, strict=True))

    def rows_of(self, split: str, marks: Sequence[str] | Array, fold: int, folds: int | None) -> Array:
        """Row numbers of one split, as files and tables say or dealt out; `marks` are equal for exact copies."""
        if split == ALL:
            return np.arange(len(self.files))
        labels = self.targets if self.kind == "classes" and len(self.targets) else None
        splits = self.splits or deal(self.names, labels, self.groups, marks, fold, folds)
        rows = np.flatnonzero([own == split for own in splits])
        if not rows.size:
            raise DataError(f"no row is of split {split!r}; every one of {', '.join(SPLITS)} needs some")
        return rows


def below(root: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """The names of files below a folder; all of it for a file elsewhere."""
    return tuple(file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file) for file in files)


def given_splits(path: Path, needed: Sequence[str] = SPLITS) -> dict[str, Path]:
    """The folders train, valid and test of data that come with splits; empty where there is no folder train."""
    found = {split: path / name for split, names in SPLIT_FOLDERS.items() for name in names if (path / name).is_dir()}
    if "train" not in found:
        return {}
    if missing := [" or ".join(SPLIT_FOLDERS[split]) for split in needed if split not in found]:
        raise DataError(f"{path}: has a folder train but none named {missing[0]}; add it, or rename train")
    return found


def list_classes(path: Path, what: Samples, split: str = "") -> Listing:
    """What folders of classes hold, in train, valid and test where these are there; too few files are a problem."""
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with one folder per class in it")
    files: list[Path] = []
    targets: list[int] = []
    splits: list[str] = []
    others: list[Path] = []
    problems: list[str] = []
    classes: tuple[str, ...] = ()
    fewest, given = (1 if split == ALL else FEWEST), given_splits(path)
    for name, part in (given or {"": path}).items():
        entries = visible(part)
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) < (2 if fewest == FEWEST else 1):
            found = f"only {folders[0].name!r}" if folders else "none"
            raise DataError(f"{part}: needs two class folders and has {found}; put each class in its own folder")
        own = tuple(folder.name for folder in folders)
        classes = classes or own
        if own != classes:
            raise DataError(f"{part}: has classes {own}; train has {classes}: both must be the same")
        others += [entry for entry in entries if entry not in folders]
        for label, folder in enumerate(folders):
            inside = visible(folder)
            right = [entry for entry in inside if what.fits(entry)]
            others += [entry for entry in inside if entry not in right]
            if len(right) < fewest:
                problems.append(f"{folder}: has {len(right)} {what.noun} ({what.formats}); at least {fewest} needed")
            files += right
            targets += [label] * len(right)
            splits += [name] * len(right)
    count = "1 entry is" if len(others) == 1 else f"{len(others)} entries are"
    notes = [f"{count} left out, not {what.formats}: {some(below(path, others))}"] * bool(others)
    return Listing(
        files, below(path, files), "classes", classes, np.array(targets, np.int64),
        tuple(splits) if given else None, notes=tuple(notes), problems=problems,
    )  # fmt: skip


def visible(folder: Path) -> list[Path]:
    """What is in a folder, in the order of names, but for hidden files."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


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
        valid_from = max(0, len(members) - sum(held_out))
        parts = np.split(members, [valid_from, max(0, len(members) - held_out[1])])
        chosen.append(parts[SPLITS.index(one_of("split", split, SPLITS))])
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
        raise DataError(f"{len(names)} {what} cannot be cut into {parts} parts; 3 to one part per group are possible")
    known, class_of = np.unique(classes, return_inverse=True)
    shares = np.zeros((len(names), len(known)))
    np.add.at(shares, (unit_of, class_of), 1)
    shares /= np.bincount(class_of)
    sizes, part_of, held = np.bincount(unit_of), np.zeros(len(names), np.int64), np.zeros((parts, len(known)))
    for unit in sorted(range(len(names)), key=lambda unit: (-sizes[unit], digest(f"{seed} {names[unit]}"))):
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
