"""The page of a run, from its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..data import as_float
from ..evaluation.score_table import NAMES, rows_of
from ..evaluation.statistics import METHOD
from ..runs.trained import Trained
from ..session import Session
from ..settings import Config, written
from .page import (
    Section,
    against_moves,
    confusion_section,
    learning_curves,
    settings_section,
    speed_section,
    write_page,
)
from .views import kernel_section, landmark_section, mistakes_section, turning_section

if TYPE_CHECKING:
    from ..data.mask_split import MaskSplit

WORDS = {"so2": "rotations", "so3": "3-D rotations", "scale": "scales"}
WORDS |= {"o2": "rotations and reflections", "o3": "3-D rotations and reflections"}
WORDS |= {"sim2": "rotations and scales", "gl2": "rotations, zooms and squeezes"}


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
        from .overlays import overlay_section

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
