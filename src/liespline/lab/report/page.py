"""The report: one HTML file that opens anywhere, without a network and without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_high
from typing import TYPE_CHECKING, Any, cast

from ..data import as_float
from ..data.files import write_text
from ..evaluation.evaluate import METHOD
from ..runs.trained import Trained
from ..screen import NAMES, rows_of
from ..session import Session
from ..settings import Config, written
from .drawings import Section, line_chart, nice_ticks, part, templates
from .views import breaking_section, kernel_section, landmark_section, mistakes_section, turning_section

if TYPE_CHECKING:
    from ..data.mask_split import MaskSplit

Rows = Sequence[Mapping[str, Any]]
WORDS = {"so2": "rotations", "so3": "3-D rotations", "scale": "scales"}
WORDS |= {"o2": "rotations and reflections", "o3": "3-D rotations and reflections"}
WORDS |= {"sim2": "rotations and scales", "gl2": "rotations, zooms and squeezes"}
WORDS |= {"axial": "rotations about one axis", "axial-o2": "rotations and reflections about one axis"}


def report_run(session: Session) -> None:
    """Write the run's page from its files."""
    run, config, split, trained = session.run, session.config, session.test, session.trained.cpu()
    results = session.results
    epochs, environment = run.read_metrics(), (run.path / "environment.json").read_text(encoding="utf-8")
    images, targets = split.__getitems__(list(range(min(8, len(split)))))
    images = as_float(images)
    sections: list[Section | None] = [
        learning_curves({"network": epochs}, trained.checkpoint_metric or session.objective.monitor)
    ]
    if "accuracy" in results.get("transformed", {}):
        where = f"{results['images']:,} {results['split']} images"
        sections += [
            against_moves({"network": results["transformed"]}),
            confusion_section(results["confusion"], trained.classes, where),
            mistakes_section(trained.classes, split, results.get("mistakes", [])),
        ]
    elif split.kind == "masks":
        from .overlays import overlay_section

        sections.append(overlay_section(trained, cast("MaskSplit", split)))
    elif split.kind == "points":
        sections.append(landmark_section(trained, images, targets))
    sections += [breaking_section(trained, images), kernel_section(trained), turning_section(trained, images[0])]
    sections.append(speed_section({"network": epochs}))
    sections.append(settings_section(run.config_file.read_text(encoding="utf-8"), environment))
    there = [section for section in sections if section is not None]
    write_page(run.report_file, title_of(config), lead_of(trained, results), cards_of(results, epochs), there)


def title_of(config: Config) -> str:
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
    for stage, group in trained.config.network.restrictions.items():
        text += f" From stage {stage} on it is equivariant to {WORDS.get(group, 'translations')} alone."
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
        speed = median_high(row["images_per_second"] for row in epochs)
        cards.append(("images per second in training", f"{speed:,.0f}"))
        cards.append(("peak memory", f"{max(row['memory_mib'] for row in epochs):,.0f} MiB"))
    return cards


def write_page(
    path: Path, title: str, lead: str, cards: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> None:
    """Render the page and put it in place in one step."""
    page = templates().get_template("report.html")
    write_text(path, page.render(title=title, lead=lead, cards=cards, sections=sections))


def learning_curves(metrics: Mapping[str, Rows], score: str) -> Section:
    """Losses and the validation score by epoch; one network with both its losses, or several side by side."""
    if len(metrics) == 1:
        rows = next(iter(metrics.values()))
        losses = {"training": _points(rows, "train_loss"), "validation": _points(rows, "valid_loss")}
    else:
        losses = {name: _points(rows, "train_loss") for name, rows in metrics.items()}
    of_score = {name: _points(rows, f"valid_{score}") for name, rows in metrics.items()}
    longest = max((len(rows) for rows in metrics.values()), default=0)
    ticks = [(x, f"{x:g}") for x in nice_ticks(1, max(longest, 2)) if x == int(x) and 1 <= x <= longest]
    label, of = "Loss" if len(metrics) == 1 else "Training loss", NAMES.get(score, score)
    charts = [
        line_chart(losses, x_label="epoch", y_label=label, x_ticks=ticks),
        line_chart(of_score, x_label="epoch", y_label=f"Validation {of}", percent=True, x_ticks=ticks),
    ]
    return Section("curves", "Learning curves", "", part("box", "pair", [(chart, "") for chart in charts]))


def _points(rows: Rows, name: str) -> list[tuple[float, float]]:
    return [(row["epoch"] + 1, row[name]) for row in rows if name in row]


def against_moves(results: Mapping[str, Mapping[str, Any]]) -> Section:
    """Accuracy of each network on rotated or scaled test images."""
    first = next(iter(results.values()))
    axis, labels = first["axis"], first["labels"]
    around = axis == "angle" and not any(label.startswith("-") for label in labels)  # else rotated a little both ways
    lines = {}
    for name, result in results.items():
        for how, order in _orders(labels).items():
            points = [(at, result["accuracy"][i]) for at, i in order]
            if around:
                points.append((360.0, points[0][1]))
            lines[f"{name}, {how}" if how else name] = points
    ticks = [(float(a), f"{a}°") for a in range(0, 361, 60)] if around else None
    chart = line_chart(
        lines, x_label=axis, y_label=f"Accuracy against {axis}", percent=True, x_ticks=ticks, y_range=(0, 1)
    )
    text = (
        f"The same {first['images']} test images, each cut to the disc that stays in view and transformed before the "
        "network sees it. A flat line means that predictions do not depend on the pose. Around the disc is the mean "
        "colour of its rim."
    )
    return Section("transformed", f"Accuracy against {axis}", text, chart)


def _orders(labels: Sequence[str]) -> dict[str, list[tuple[float, int]]]:
    """One line for each other transformation: `30°` and `30°, mirrored` are on two lines."""
    lines: dict[str, list[tuple[float, int]]] = {}
    for i, label in enumerate(labels):
        at, _, how = label.partition(", ")
        lines.setdefault(how, []).append((float(at.rstrip("°")), i))
    return {how: sorted(line) for how, line in lines.items()}


def confusion_section(table: Sequence[Sequence[int]], classes: Sequence[str], which: str) -> Section:
    """Which classes are taken for which."""
    text = f"Rows are true classes, columns predicted ones, on {which}. The last column is each class's sensitivity."
    return Section("confusion", "Confusion matrix", text, part("confusion", list(classes), table))


def comparison(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], best: int = -1) -> Section:
    """Networks side by side, the best one in bold."""
    return Section("comparison", "Side by side", "", part("table", "numbers", columns, rows, best))


def speed_section(metrics: Mapping[str, Rows]) -> Section:
    rows = []
    for name, epochs in metrics.items():
        if epochs:
            speed = median_high(row["images_per_second"] for row in epochs)
            memory = max(row["memory_mib"] for row in epochs)
            seconds = sum(row["seconds"] for row in epochs)
            rows.append((name, [f"{speed:,.0f}", f"{memory:,.0f}", f"{seconds:,.1f}"]))
    section = comparison(["Network", "Images per second", "Peak memory, MiB", "Seconds of training"], rows)
    return Section("speed", "Speed and memory", "Training, forward and backward; the median epoch.", section.body)


def settings_section(yaml: str, environment: str) -> Section:
    """Everything needed to do it again."""
    body = part("folded", [("Configuration", yaml), ("Versions, commit and machine", environment)])
    return Section("settings", "How to repeat it", "The same seed gives the same numbers on the same machine.", body)
