"""The final numbers of a run with their names, the same on the screen and in the report."""

from __future__ import annotations

from typing import Any

NAMES = {
    "loss": "loss", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy",
    "auc": "area under the ROC curve", "success": "landmarks found", "f1": "F1", "r2": "R²",
    "mean_absolute_error": "mean absolute error",
    "dice": "Dice, mean of all classes but the first", "dice_per_image": "Dice, mean of single images",
}  # fmt: skip
PLAIN = ("loss", "r2", "mean_absolute_error")
MOST_CLASSES = 12


def rows_of(results: dict[str, Any]) -> list[tuple[str, str]]:
    """Each number with its name; intervals behind the numbers they belong to."""
    interval = results.get("interval", {})
    rows = []
    for name, value in results["scores"].items():
        rows.append((NAMES.get(name, name), written(name, value) + _range(interval.get(name))))
        if name == "accuracy" and "majority_class_accuracy" in results:
            rows.append(("majority-class accuracy", percent(results["majority_class_accuracy"])))
    for score, names in results.get("undefined", {}).items():
        text = ", ".join(names[:MOST_CLASSES]) + ", …" * (len(names) > MOST_CLASSES)
        rows.append((f"{NAMES.get(score, score)}, undefined here and left out", text))
    several: dict[str, dict[str, float]] = results.get("per_tag") or results.get("per_column") or {}
    if 1 < len(several) <= MOST_CLASSES:
        for name, own in several.items():
            rows += [(f"{NAMES[score]}, {name}", written(score, value)) for score, value in own.items()]
    sensitivity, sure = results.get("sensitivity", {}), results.get("sensitivity_interval", {})
    if len(sensitivity) <= MOST_CLASSES:
        rows += [(f"sensitivity, {name}", percent(v) + _range(sure.get(name))) for name, v in sensitivity.items()]
    transformed = results.get("transformed", {})
    if "accuracy" in transformed:
        these = f"the same {transformed['images']:,} images"
        if "upright" in transformed:
            rows.append((f"accuracy unrotated, {these}", percent(transformed["upright"])))
        rows.append((f"accuracy over every {transformed['axis']}, {these}", percent(transformed["mean_accuracy"])))
        over_all = transformed.get("scores", {})
        for name in ("balanced_accuracy", "auc") if "auc" in over_all else ():
            rows.append((f"{NAMES[name]}, transformed", percent(over_all[name])))
    rows += change_rows(transformed)
    if rotated := results.get("rotated_masks"):
        these = f"in the part that stays in view, {rotated['images']:,} images"
        kinds = {
            f"Dice unrotated, {these}": "upright",
            f"Dice rotated by 45°, {these}": "rotated",
            "how consistently masks rotate with their images (Dice)": "rotation_consistency",
        }
        empty = "undefined: there is no class but the first"
        rows += [(words, empty if rotated[kind] is None else percent(rotated[kind])) for words, kind in kinds.items()]
        rows += change_rows(rotated)
    return [*rows, ("parameters", f"{results['parameters']:,}")]


def written(score: str, value: float) -> str:
    """A score for people."""
    return f"{value:.4g}" if score in PLAIN else percent(value)


def change_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """By how much the output changes between transformed copies of an image, in units of its deviation over images.

    Results of old have another number, over the norm of the output and against images that were not interpolated.
    """
    if "relative_output_change" not in found:
        old = "change of the output (old measure: over its norm)"
        return [(old, percent(found["change"]))] if "change" in found else []
    if found["relative_output_change"] is None:
        return [("relative output change", "undefined: the output is the same for all images")]
    parts = {
        "": "",
        ", worst pair": "_worst",
        " on the grid": "_on_grid",
        " between the grid's elements": "_between_grid",
    }
    rows = [
        (f"relative output change{words}", percent(value))
        for words, end in parts.items()
        if (value := found[f"relative_output_change{end}"]) is not None
    ]
    if (floor := found["interpolation_floor"]) is not None:
        rows.append(("of which interpolation alone", percent(floor)))
    if "changed_predictions" in found:
        rows.append(("predictions that change between copies", percent(found["changed_predictions"])))
    return rows


def percent(value: float) -> str:
    """A share for people."""
    return f"{100 * value:.1f} %"


def _range(interval: list[float] | None) -> str:
    return "" if interval is None else f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"


LAYER_COLUMNS = ("layer", "kind", "mean error", "worst error", "floor", "left out")


def layer_cells(row: dict[str, Any]) -> list[str]:
    """One of the layers' errors for people."""
    numbers = ("undefined" if row[name] is None else f"{row[name]:.2e}" for name in LAYER_COLUMNS[2:5])
    return [row["layer"], row["kind"], *numbers, f"{row['left out']} of {row['of']}" if row["left out"] else "–"]
