"""What is printed: names as they are, mistakes in a sentence, nothing of libraries' internals."""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

NAMES = {
    "loss": "loss", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy",
    "auc": "area under the ROC curve", "success": "landmarks found", "f1": "F1", "r2": "R²",
    "mean_absolute_error": "mean absolute error",
    "dice": "Dice, mean of all classes but the first", "dice_per_image": "Dice, mean of single images",
}  # fmt: skip
PLAIN = ("loss", "r2", "mean_absolute_error")
MOST_CLASSES = 12
LAYER_COLUMNS = ("layer", "kind", "mean error", "worst error", "floor", "left out")


class Screen(Console):
    """A console for which text is text: no markup, no emoji codes, no commands to the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text with a mark in place of each character that would move the cursor or change the terminal."""
        return super().render_str(printable(text), **options)


def printable(text: str) -> str:
    """The text with � for each character that is not to be seen, line breaks apart."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def quiet(loggers: Sequence[str], messages: Sequence[str]) -> Iterator[None]:
    """Keep what libraries say of their own internals off the screen: all but errors, and warnings that begin so."""
    known = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in known]
    for logger in known:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for message in messages:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for logger, level in zip(known, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def clear_messages() -> Iterator[None]:
    """Report a user's mistakes, and disks and folders that cannot be used, in words, and end with status 2."""
    if not sys.warnoptions:  # for people, unless Python was told how to treat warnings
        warnings.showwarning = note
    threading.excepthook = in_thread
    try:
        yield
    except (ValueError, OSError) as error:
        if os.environ.get("LIESPLINE_DEBUG"):
            raise
        file = getattr(error, "filename", None)
        text = f"{file}: {error.strerror}" if isinstance(error, OSError) and file else str(error)
        # Long lines are the terminal's to break: a path is to be copied whole.
        Screen(stderr=True).print(f"Error: {text}", style="red", soft_wrap=True)
        sys.exit(2)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Treat SIGTERM, by which clusters end jobs, like Ctrl-C: the processes that were started end too."""
    if threading.current_thread() is not threading.main_thread():  # no other may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def note(message: Warning | str, *place: Any, **more: Any) -> None:
    """A warning as a sentence, without the line of code it came from."""
    Screen(stderr=True).print(f"Note: {message}", style="yellow", soft_wrap=True)


def in_thread(failed: threading.ExceptHookArgs) -> None:
    """Ignore a disk that a logger's thread cannot write to: the main thread meets the same error."""
    if not isinstance(failed.exc_value, OSError):
        threading.__excepthook__(failed)


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
    if calibrated := results.get("calibration"):
        rows.append(("calibration error (ECE)", percent(calibrated["error"])))
        if "temperature" in calibrated:
            words = f"ECE at temperature {calibrated['temperature']:.3g}, fitted on validation"
            rows.append((words, percent(calibrated["error_with_temperature"])))
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


def layer_cells(row: dict[str, Any]) -> list[str]:
    """One of the layers' errors for people."""
    numbers = ("undefined" if row[name] is None else f"{row[name]:.2e}" for name in LAYER_COLUMNS[2:5])
    return [row["layer"], row["kind"], *numbers, f"{row['left out']} of {row['of']}" if row["left out"] else "–"]
