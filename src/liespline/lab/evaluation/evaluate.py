"""After training: the final numbers and the report of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..data import Split, as_float
from ..data.landmarks import found, locate
from ..data.mask_split import MaskSplit
from ..data.record import Record
from ..report.overlays import overlay_section
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
from ..runs.data import differences, read_record, refuse, splits_of
from ..runs.folder import Run
from ..runs.per_image import pack, pack_classes
from ..runs.trained import Trained, load
from ..settings import Config, written
from ..tasks import find_task
from ..tasks.objectives import Classification, Landmarks
from .map_change import change_of_maps
from .mask_scores import score_masks
from .moves import moves_of, under_moves
from .output_change import change_of_answers
from .scores import answers, apart, confusion, mistakes, predictions, scores
from .statistics import METHOD, behind_accuracy, intervals, success_interval
from .words import NAMES, rows_of

MOVED_IMAGES = 500
WORDS = {"so2": "rotations", "so3": "3-D rotations", "scale": "scales"}
WORDS |= {"o2": "rotations and reflections", "o3": "3-D rotations and reflections"}
WORDS |= {"sim2": "rotations and scales", "gl2": "turns, zooms and squeezes"}


def best_device(config: Config) -> str:
    """The device to evaluate on."""
    return "cuda" if torch.cuda.is_available() and config.training.accelerator != "cpu" else "cpu"


def weights_in(network: torch.nn.Module) -> int:
    """The number of trainable weights."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def evaluate_run(run: Run, config: Config) -> dict[str, Any]:
    """Score the run's best network and write `results.json`: then the run is finished."""
    trained, record = load(run.path, best_device(config)), read_record(run.path)
    name, split = test_split(config, record)
    if record is not None:
        refuse(differences(config, record, name), config, "bring it back, then go on with --resume")
    results = {"split": name, "images": len(split), "synthetic": bool(split.synthetic), **score(trained, split)}
    results |= {"data": record.fingerprint} if record is not None else {}
    results["checkpoint_metric"] = trained.checkpoint_metric
    results["seconds"] = round(sum(row["seconds"] for row in run.read_metrics()), 2)
    run.write_results(results)
    return results


def test_split(config: Config, record: Record | None) -> tuple[str, Split]:
    """The test images; the validation images of data that come without, and then every result says so."""
    name = "test" if "test" in find_task(config).splits(config) else "valid"
    return name, splits_of(config, record, name)[name]


def score(trained: Trained, split: Split) -> dict[str, Any]:
    """The scores of a network, and for classes what stands behind them, and how it fares when images are moved."""
    results: dict[str, Any] = {"task": trained.config.task, "parameters": weights_in(trained)}
    objective = find_task(trained.config).objective(trained.config, trained.signature)
    if isinstance(split, MaskSplit):
        masks = score_masks(trained, split)
        return results | masks | {"rotated_masks": masks["rotated_masks"] | change_of_maps(trained, split)}
    if isinstance(objective, Classification):
        outputs, targets = predictions(trained, split)
        table = confusion(outputs, targets, len(trained.classes))
        results |= {"scores": scores(trained, [(outputs, targets)]), "confusion": table}
        results |= behind_accuracy(table, trained.classes)
        results["interval"] = intervals(outputs, targets)
        results["mistakes"] = mistakes(outputs, targets)
        results["per_image"] = pack_classes(split.names, outputs, targets)
        results |= apart(trained, outputs, targets)
        results["transformed"] = under_moves(trained, split, moves_of(trained), MOVED_IMAGES)
        results["transformed"] |= change_of_answers(trained, split, MOVED_IMAGES)
        return results
    if not isinstance(objective, Landmarks):
        outputs, targets = predictions(trained, split)
        moves = {"images": min(len(split), MOVED_IMAGES), **change_of_answers(trained, split, MOVED_IMAGES)}
        results |= {"scores": scores(trained, [(outputs, targets)]), "transformed": moves}
        return results | apart(trained, outputs, targets)
    hits: list[Tensor] = []

    def watched() -> Iterator[tuple[Tensor, Tensor]]:
        for maps, landmarks in answers(trained, split):
            hits.append(found(locate(maps, objective.blur), landmarks))
            yield maps, landmarks

    results["scores"] = scores(trained, watched())
    results["interval"] = {"success": success_interval(torch.cat(hits))}
    results["per_image"] = pack(split.names, found=torch.cat(hits).double().mean(-1))
    return results


def report_run(run: Run, config: Config) -> None:
    """Write the run's page from its files."""
    results = run.read_results("scores", "images", "parameters", "split", "synthetic")
    epochs = run.read_metrics()
    trained = load(run.path)
    _, split = test_split(config, read_record(run.path))
    images, targets = split.__getitems__(list(range(min(8, len(split)))))
    images = as_float(images)
    where = f"{results['images']:,} {results['split']} images"
    shown = trained.checkpoint_metric or find_task(config).objective(config, trained.signature).monitor
    sections: list[Section | None] = [learning_curves({"network": epochs}, shown)]
    if "accuracy" in results.get("transformed", {}):
        sections.append(against_moves({"network": results["transformed"]}))
        sections.append(confusion_section(results["confusion"], trained.classes, where))
        sections.append(mistakes_section(trained.classes, split, results.get("mistakes", [])))
    elif isinstance(split, MaskSplit):
        sections.append(overlay_section(trained, split))
    elif split.kind == "points":
        sections.append(landmark_section(trained, images, targets))
    sections += [kernel_section(trained), turning_section(trained, images[0])]
    sections.append(speed_section({"network": epochs}))
    environment = (run.path / "environment.json").read_text(encoding="utf-8")
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
        f"{what} {results['parameters']:,} weights for images of {size} and {len(trained.classes)} "
        f"classes, tested on {results['images']:,} images that it did not learn from."
    )
    if "interval" in results:
        text += f" Numbers in brackets are intervals ({METHOD})."
    if trained.config.training.train_on_val:
        text += " This is the last epoch; it learned from the validation images too."
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
