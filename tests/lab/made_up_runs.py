"""Runs whose means and spreads are known beforehand."""

import json
from dataclasses import replace

from liespline.lab.tasks import find_task


def write(folder, config, scores, epochs=(), **changed):
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.to_yaml())
    results = {"split": "test", "images": 300, "synthetic": False, "task": config.task, "weights": 9, "scores": scores}
    (folder / "results.json").write_text(json.dumps(results | changed))
    row = {"seconds": 1.0, "images_per_second": 4321.0, "memory_mib": 1.0}
    rows = [{"epoch": number, **row, **epoch} for number, epoch in enumerate(epochs)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_runs(folder, task, scores, step=0.001, seeds=3, preset="paper", **changed):
    """Runs as the sweep would leave them, of mean `scores` and, over three seeds, standard deviation `step`."""
    runs = find_task(task).sets["paper"](replace(find_task(task).defaults, preset=preset))
    for name, value in scores.items():
        for seed in range(seeds):
            score = {"success" if task == "celeba" else "accuracy": value + step * (seed - (seeds - 1) / 2)}
            write(folder / name / f"seed-{seed}", replace(runs[name], seed=seed), score, **changed)
    return folder
