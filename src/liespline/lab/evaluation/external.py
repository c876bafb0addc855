"""`liespline evaluate`: a trained network on a split of its own data, or on another set."""

from pathlib import Path
from typing import Any

from ..data import DataError, Split
from ..data.files import grouped, size_words
from ..data.split import ALL, SPLITS
from ..runs.folder import Run, folds_in
from ..runs.trained import Trained, load
from ..segmentation import unlike_voxels
from ..session import Session, compared
from ..settings import Config, ConfigError, one_of
from ..tasks import find_task
from .equivariance import first_images, layer_errors
from .evaluate import score
from .inputs import OtherSizes
from .scores import best_device

AS_ANOTHER = "score the set as it is, as another one, with --split all"


def score_file(
    checkpoint: Path,
    data: Path | None,
    name: str,
    labels: Path | None = None,
    other_sizes: OtherSizes = "refuse",
    layers: bool = False,
    cases: Path | None = None,
    largest: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """Scores of a trained network, of its `layers` too, and what must be known to read them.

    Of masks, a table of single `cases` is written, if wanted of the `largest` component of each class alone.

    A split of the run's own data is the one that the run kept, image by image: data that have changed are refused.
    """
    one_of("split", name, (*SPLITS, ALL))
    folds = folds_in(checkpoint)
    kept = [Run(folder).manifest() for folder in folds or [checkpoint if checkpoint.is_dir() else checkpoint.parent]]
    manifest = None if folds else kept[0]
    trained = load(checkpoint)
    if (cases or largest) and trained.signature.kind != "masks":
        raise ConfigError(f"--cases and --largest-component are for masks; {checkpoint} has task {trained.config.task}")
    given = {place: str(path) for place, path in {"data": data, "labels": labels}.items() if path is not None}
    config = find_task(trained.config).configured(trained.config, **given)
    own = name != ALL and not folds and (data is None or (manifest is not None and manifest.dealt))
    config = as_trained(config, trained, other_sizes)
    session = Session(config, manifest=manifest if own else None, advice=f"bring it back, or {AS_ANOTHER}")
    session.check_there()
    if folds and data is None:
        raise DataError(
            f"{checkpoint}: is the mean of {len(folds)} networks that were tested on images of their own; those scores "
            "are in its results.json. Score another set with --data"
        )
    split = session.load(name)[name]
    remarks = [f"images that came later are not scored: {session.changes.words}"] if session.changes.added else []
    where = str(config.data or config.task)
    if split.dealt and name != ALL and session.manifest is None:
        why = "the run kept no data.json" if own else f"nothing says which images are of split {name}"
        raise DataError(f"{where}: {why}; {AS_ANOTHER}")
    if not len(split):
        raise DataError(f"{where}: has no {name} images; --split names another part, such as valid")
    split = fitting(split, trained, where, other_sizes)
    spacings = zip(split.names, split.spacings, strict=False)  # which images do not have
    remarks += grouped([f"{n}: {text}" for n, side in spacings if (text := unlike_voxels(trained.signature, side))])
    results: dict[str, Any] = {"split": name, "images": len(split)}
    if remark := compared(trained.value_range, split).remark:
        remarks.append(f"Warning: {remark}")
    if not own and any(kept):
        known = set().union(*(one.marks("train") | one.marks("valid") for one in kept if one is not None))
        results["train_overlap"] = sum(mark in known for mark in split.seen.marks)
        if results["train_overlap"]:
            remarks.append(
                f"{results['train_overlap']:,} of these {len(split):,} images were trained on: "
                "the numbers are optimistic"
            )
    rows: list[Any] = []
    of_masks: dict[str, Any] = {"cases": rows if cases else None, "largest": largest} if cases or largest else {}
    results |= score(trained.to(best_device(config)), split, **of_masks)
    if cases:
        from .cases import write_cases

        remarks += write_cases(cases, rows)
    return results | ({"equivariance": layer_errors(trained, first_images(split))} if layers else {}), remarks


def as_trained(config: Config, trained: Trained, other_sizes: OtherSizes) -> Config:
    """With voxels and a box of the size in training, whatever the data at hand would have; images too if resized."""
    signature, space = trained.signature, trained.signature.space
    if signature.spacing is not None:
        return config.updated(spacing=signature.spacing, size=space if config.task == "volumes" else None)
    if other_sizes != "resize":
        return config
    if "size" not in find_task(config).options:
        raise ConfigError(f"--resize: images of task {config.task} are not scaled; leave it out")
    if len(space) == 2 and len(set(space)) > 1:
        size = size_words(space)
        raise ConfigError(f"--resize: --size makes squares, and the network was trained on {size}; resize the images")
    return config.updated(size=space[0] if len(space) == 2 else space)


def fitting(split: Split, trained: Trained, where: str, other_sizes: OtherSizes) -> Split:
    """The images as the network takes them: its classes, its colours, and a size it takes."""
    sides = (trained.signature.spacing, split.side)
    if (sides[0] is None) != (sides[1] is None):
        known, here = ("arrays without a spacing" if side is None else "scans with a spacing" for side in sides)
        raise DataError(f"{where}: the network was trained on {known}, and these are {here}")
    split = split.among(trained.classes, where).in_colours(trained.signature.in_channels, where)
    trained.check_size(split.space, where, any_size=other_sizes == "any")
    return split
