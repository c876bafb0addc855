"""After training: the final numbers and the report of a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ..data import Split, as_float
from ..data.landmarks import found, locate
from ..report.page import (
    Section,
    against_moves,
    confusion_section,
    learning_curves,
    settings_section,
    speed_section,
    write_page,
)
from ..report.views import kernel_section, landmark_section, mistakes_section, turning_section
from ..runs.per_image import pack, pack_classes
from ..runs.trained import Trained
from ..session import Session
from ..settings import Config, written
from ..tasks import find_task
from ..tasks.objectives import Classification, Landmarks
from .elements import transforms_of
from .invariance import MAP_IMAGES, accuracies, relative_change
from .score_table import NAMES, rows_of
from .scores import answers, apart, best_device, confusion, mistakes, predictions, scores
from .statistics import METHOD, behind_accuracy, intervals, success_interval

if TYPE_CHECKING:
    from ..data.mask_split import MaskSplit

MOVED_IMAGES = 500
WORDS = {"so2": "rotations", "so3": "3-D rotations", "scale": "scales"}
WORDS |= {"o2": "rotations and reflections", "o3": "3-D rotations and reflections"}
WORDS |= {"sim2": "rotations and scales", "gl2": "rotations, zooms and squeezes"}


def weights_in(network: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def evaluate_run(session: Session) -> dict[str, Any]:
    """Score the run's best network and write `results.json`: then the run is finished."""
    run, split = session.run, session.test_again()
    trained = session.trained.to(best_device(session.config))
    results = {"split": session.tested, "images": len(split), "synthetic": bool(split.synthetic)}
    results |= score(trained, split)
    results |= {"data": session.manifest.fingerprint} if session.manifest is not None else {}
    results["checkpoint_metric"] = trained.checkpoint_metric
    results["seconds"] = round(sum(row["seconds"] for row in run.read_metrics()), 2)
    run.write_results(results)
    return results


def score(trained: Trained, split: Split) -> dict[str, Any]:
    """The scores of a network, what is known of each class, and how it fares when images are transformed."""
    about = {"task": trained.config.task, "parameters": weights_in(trained)}
    objective = find_task(trained.config).objective(trained.config, trained.signature)
    change = partial(relative_change, trained, split, MOVED_IMAGES)
    if split.kind == "masks":
        from .mask_scores import score_masks  # only now: all that images with masks need comes with it

        masks = score_masks(trained, cast("MaskSplit", split))
        return about | masks | {"rotated_masks": masks["rotated_masks"] | change()}
    if isinstance(objective, Landmarks):
        shown = {"images": min(len(split), MAP_IMAGES[len(split.space)])}
        return about | _of_landmarks(trained, split, objective) | {"transformed": shown | change()}
    outputs, targets = predictions(trained, split)
    results = about | {"scores": scores(trained, [(outputs, targets)]), **apart(trained, outputs, targets)}
    if not isinstance(objective, Classification):
        return results | {"transformed": {"images": min(len(split), MOVED_IMAGES), **change()}}
    table = confusion(outputs, targets, len(trained.classes))
    return results | {
        **behind_accuracy(table, trained.classes),
        "confusion": table,
        "interval": intervals(outputs, targets),
        "mistakes": mistakes(outputs, targets),
        "per_image": pack_classes(split.names, outputs, targets),
        "transformed": accuracies(trained, split, transforms_of(trained), MOVED_IMAGES) | change(),
    }


def _of_landmarks(trained: Trained, split: Split, objective: Landmarks) -> dict[str, Any]:
    hits: list[Tensor] = []

    def watched() -> Iterator[tuple[Tensor, Tensor]]:
        for maps, landmarks in answers(trained, split):
            hits.append(found(locate(maps, objective.blur), landmarks))
            yield maps, landmarks

    results: dict[str, Any] = {"scores": scores(trained, watched())}
    every = torch.cat(hits)
    of_images = pack(split.names, found=every.double().mean(-1))
    return results | {"interval": {"success": success_interval(every)}, "per_image": of_images}


def report_run(session: Session) -> None:
    """Write the run's page from its files."""
    run, config, split, trained = session.run, session.config, session.test, session.trained.cpu()
    results = run.read_results("scores", "images", "parameters", "split", "synthetic")
    epochs, environment = run.read_metrics(), (run.path / "environment.json").read_text(encoding="utf-8")
    images, targets = split.__getitems__(list(range(min(8, len(split)))))
    images = as_float(images)
    sections: list[Section | None] = [
        learning_curves({"network": epochs}, trained.checkpoint_metric or session.objective.monitor)
    ]
    if "accuracy" in results.get("transformed", {}):
        where = f"{results['images']:,} {results['split']} images"
        sections.append(against_moves({"network": results["transformed"]}))
        sections.append(confusion_section(results["confusion"], trained.classes, where))
        sections.append(mistakes_section(trained.classes, split, results.get("mistakes", [])))
    elif split.kind == "masks":
        from ..report.overlays import overlay_section

        sections.append(overlay_section(trained, cast("MaskSplit", split)))
    elif split.kind == "points":
        sections.append(landmark_section(trained, images, targets))
    sections += [kernel_section(trained), turning_section(trained, images[0]), speed_section({"network": epochs})]
    sections.append(settings_section(run.config_file.read_text(encoding="utf-8"), environment))
    there = [section for section in sections if section is not None]
    write_page(run.report_file, title_of(config), lead_of(trained, results), cards_of(results, epochs), there)


def title_of(config: Config) -> str:
    """The page's heading."""
    network = config.network
    if network.group == "none":
        return f"{config.label}: plain CNN, no group"
    return f"{config.label}: {written(network.elements)} {WORDS[network.group]}, {network.kernel} kernels"


def lead_of(trained: Trained, results: dict[str, Any]) -> str:
    """One sentence under the heading, and what must be known about the data."""
    size = "×".join(map(str, trained.signature.space))
    count = trained.config.network.ensemble
    what = "A network of" if count == 1 else f"The mean of {count} networks, together of"
    text = (
        f"{what} {results['parameters']:,} parameters for images of {size} and {len(trained.classes)} "
        f"classes, tested on {results['images']:,} images that it was not trained on."
    )
    if "interval" in results:
        text += f" Numbers in brackets are intervals ({METHOD})."
    if trained.config.training.train_on_val:
        text += " This is the last epoch; it was trained on the validation images too."
    elif results.get("checkpoint_metric"):
        text += f" Of all epochs, this is the one with the best validation {NAMES[results['checkpoint_metric']]}."
    if results["split"] == "valid":
        text += " These are the validation images, which picked the best epoch: the data have no test images."
    return text + (" The images are synthetic." if results["synthetic"] else "")


def cards_of(results: dict[str, Any], epochs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The numbers to see first."""
    cards = [(words, value) for words, value in rows_of(results) if not words.startswith("loss")]
    if epochs:
        speeds = sorted(row["images_per_second"] for row in epochs)
        cards.append(("images per second in training", f"{speeds[len(speeds) // 2]:,.0f}"))
        cards.append(("peak memory", f"{max(row['memory_mib'] for row in epochs):,.0f} MiB"))
    return cards
