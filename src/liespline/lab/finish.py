"""What happens after training: the final numbers and the report of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from .config import Config, ConfigError, one_of
from .data.split import SPLITS
from .evaluate import confusion, moves_of, predictions, scores, under_moves
from .loading import Trained, load
from .network import Signature
from .report import (
    Section,
    against_moves,
    confusion_section,
    learning_curves,
    settings_section,
    speed_section,
    write_page,
)
from .run import Run
from .tasks import find_task
from .views import kernel_section, turning_section

MOVED_IMAGES = 500


def best_device(config: Config) -> str:
    """The device to evaluate on."""
    return "cuda" if torch.cuda.is_available() and config.training.accelerator != "cpu" else "cpu"


def weights_in(network: torch.nn.Module) -> int:
    """The number of trainable weights."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def evaluate_run(run: Run, config: Config) -> dict[str, Any]:
    """Score the run's best network on the test images and write `results.json`: then the run is finished."""
    trained = load(run.path, best_device(config))
    split = find_task(config.task).load(config, "test")
    outputs, targets = predictions(trained, split)
    epochs = run.read_metrics()
    results: dict[str, Any] = {
        "task": config.task,
        "test": scores(trained, outputs, targets),
        "test_images": len(split),
        "confusion": confusion(outputs, targets, len(trained.classes)),
        "moves": under_moves(trained, split, moves_of(trained), MOVED_IMAGES),
        "weights": weights_in(trained),
        "seconds": round(sum(row["seconds"] for row in epochs), 2),
        "synthetic": bool(split.synthetic),
    }
    run.write_results(results)
    return results


def report_run(run: Run, config: Config) -> None:
    """Write the run's page from its files."""
    results, metrics = run.read_results(), {"network": run.read_metrics()}
    trained = load(run.path)
    task = find_task(config.task)
    split = task.load(config, "test")
    image = split.__getitems__([0])[0][0]
    image = image.float() / 255 if image.dtype == torch.uint8 else image.float()
    score = task.objective(config, trained.signature).monitor
    sections = [
        learning_curves(metrics, score),
        against_moves({"network": results["moves"]}),
        confusion_section(results["confusion"], trained.classes, f"{results['test_images']} test images"),
        kernel_section(trained),
        turning_section(trained, image),
        speed_section(metrics),
        settings_section(config.to_yaml(), (run.path / "environment.json").read_text(encoding="utf-8")),
    ]
    write_page(
        run.report_file,
        title_of(config),
        lead_of(trained, results),
        cards_of(results, metrics["network"]),
        [section for section in sections if isinstance(section, Section)],
    )


def title_of(config: Config) -> str:
    """The page's heading."""
    return f"{config.task}: {group_words(config)}"


def group_words(config: Config) -> str:
    """The network's group in words."""
    network = config.network
    names = {"so2": "rotations", "so3": "3-D rotations", "scale": "scales"}
    if network.group == "none":
        return "plain CNN (no group)"
    return f"{network.n_h} {names[network.group]}, {network.kernel} kernels"


def lead_of(trained: Trained, results: dict[str, Any]) -> str:
    """One sentence under the heading."""
    size = "×".join(map(str, trained.signature.space))
    drawn = " The images are synthetic." if results["synthetic"] else ""
    return (
        f"A network of {results['weights']:,} weights for images of {size} in {len(trained.classes)} "
        f"classes, tested on {results['test_images']:,} images it never saw.{drawn}"
    )


def cards_of(results: dict[str, Any], epochs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The numbers to see first."""
    test, moves = results["test"], results["moves"]
    cards = [("test accuracy", f"{100 * test['accuracy']:.1f} %")]
    if "auc" in test:
        cards.append(("area under ROC", f"{test['auc']:.3f}"))
    cards.append((f"over every {moves['axis']}", f"{100 * moves['mean_accuracy']:.1f} %"))
    cards.append(("change of output when moved", f"{100 * moves['change']:.1f} %"))
    cards.append(("weights", f"{results['weights']:,}"))
    if epochs:
        speeds = sorted(row["images_per_second"] for row in epochs)
        cards.append(("images a second", f"{speeds[len(speeds) // 2]:,.0f}"))
        cards.append(("peak memory", f"{max(row['memory_mib'] for row in epochs):,.0f} MiB"))
    return cards


def summary(results: dict[str, Any]) -> str:
    """The results as one JSON line, for programs."""
    return json.dumps({key: results[key] for key in ("task", "test", "weights", "seconds")})


def score_file(checkpoint: Path, data: Path | None, split: str) -> dict[str, Any]:
    """Scores of a trained network on a split of its own data, or of other data in the same layout."""
    trained = load(checkpoint)
    config = trained.config.updated({}, {}, data=None if data is None else str(data))
    trained.to(best_device(config))
    rows = find_task(config.task).load(config, one_of("split", split, SPLITS))
    if Signature.of(rows) != trained.signature:
        raise ConfigError(f"{data}: holds {Signature.of(rows)}; the network was trained on {trained.signature}")
    outputs, targets = predictions(trained, rows)
    results = {"task": config.task, "test": scores(trained, outputs, targets), "weights": weights_in(trained)}
    if targets.ndim == 1:
        results["moves"] = under_moves(trained, rows, moves_of(trained), MOVED_IMAGES)
    return results
