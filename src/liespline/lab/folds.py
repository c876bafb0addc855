"""`--folds`: one run per part of the data, each part once for testing, and one page over all of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from markupsafe import Markup

from .data.files import write_text
from .report.page import Section, write_page
from .runs.folder import Run
from .settings import SETTINGS, Config
from .training.start import check_same_settings, reopened, start
from .training.train import train

LATER = [name for name, setting in SETTINGS.items() if setting.later]


def train_folds(config: Config, out: Path, *, progress: bool = True) -> dict[str, Any]:
    """Train a run in OUT/fold-1, OUT/fold-2, …, resuming those that are there, and write OUT/report.html."""
    runs = []
    for number in range(1, int(config.folds or 1) + 1):
        folder, chosen = out / f"fold-{number}", config.updated(fold=number)
        if Run(folder).config_file.is_file():
            check_same_settings(folder, chosen, LATER)
            session = reopened(folder, {name: chosen[name] for name in LATER})
        else:
            session = start(chosen, folder)
        train(session, progress=progress)
        runs.append(session.run.read_results("scores", "images", "parameters"))
    return summary(runs, config, out)


def summary(runs: list[dict[str, Any]], config: Config, out: Path) -> dict[str, Any]:
    """Mean and standard deviation of every score over the runs, as JSON and as a page."""
    names = [name for name in runs[0]["scores"] if all(name in run["scores"] for run in runs)]
    scores = {name: [float(run["scores"][name]) for run in runs] for name in names}
    found: dict[str, Any] = {"task": config.task, "folds": len(runs), "images": sum(run["images"] for run in runs)}
    found |= {"scores": {name: sum(values) / len(values) for name, values in scores.items()}}
    found |= {"deviation": {name: deviation(values) for name, values in scores.items()}, "each": scores}
    write_text(out / "results.json", json.dumps(found, indent=1) + "\n")
    rows = [
        (name, f"{found['scores'][name]:.4f}", f"{found['deviation'][name]:.4f}", *(f"{v:.4f}" for v in values))
        for name, values in scores.items()
    ]
    heads = ("score", "mean", "standard deviation", *(f"fold {i + 1}" for i in range(len(runs))))
    cells = Markup("").join(Markup("<tr>{}</tr>").format(_cells(row, "td")) for row in rows)
    table = Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(_cells(heads, "th"), cells)
    text = "Every image was tested once, by the run that was neither trained on it nor picked its best epoch by it."
    cards = [(name, f"{found['scores'][name]:.3f} ± {found['deviation'][name]:.3f}") for name in names[:6]]
    lead = f"{len(runs)} runs on {found['images']:,} images; the report of each is in its folder."
    write_page(
        out / "report.html", f"{config.label}: {len(runs)} folds", lead, cards, [Section("folds", "Folds", text, table)]
    )
    return found


def deviation(values: list[float]) -> float:
    """The standard deviation of a sample."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))


def _cells(values: tuple[str, ...], kind: str) -> Markup:
    return Markup("").join(Markup(f"<{kind}>{{}}</{kind}>").format(value) for value in values)
