"""`--folds`: one run per part of the data, each part once for testing, and one page over all of them."""

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from .data.files import write_text
from .report.drawings import Section
from .report.page import comparison, write_page
from .runs.folder import Run, check_same_settings
from .settings import SETTINGS, Config
from .training.train import reopened, start, train

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
        runs.append(session.results)
    return summary(runs, config, out)


def summary(runs: list[dict[str, Any]], config: Config, out: Path) -> dict[str, Any]:
    """Mean and standard deviation of every score over the runs, as JSON and as a page."""
    names = [name for name in runs[0]["scores"] if all(name in run["scores"] for run in runs)]
    scores = {name: [float(run["scores"][name]) for run in runs] for name in names}
    found: dict[str, Any] = {"task": config.task, "folds": len(runs), "images": sum(run["images"] for run in runs)}
    found |= {"scores": {name: fmean(values) for name, values in scores.items()}}
    found |= {"deviation": {name: stdev(values) for name, values in scores.items()}, "each": scores}
    write_text(out / "results.json", json.dumps(found, indent=1) + "\n")
    rows = [
        (name, [f"{value:.4f}" for value in (found["scores"][name], found["deviation"][name], *values)])
        for name, values in scores.items()
    ]
    heads = ["Score", "Mean", "Standard deviation", *(f"Fold {number}" for number in range(1, len(runs) + 1))]
    text = "Every image was tested once, by the run that was neither trained on it nor picked its best epoch by it."
    section = Section("folds", "Folds", text, comparison(heads, rows).body)
    cards = [(name, f"{found['scores'][name]:.3f} ± {found['deviation'][name]:.3f}") for name in names[:6]]
    lead = f"{len(runs)} runs on {found['images']:,} images; the report of each is in its folder."
    write_page(out / "report.html", f"{config.label}: {len(runs)} folds", lead, cards, [section])
    return found
