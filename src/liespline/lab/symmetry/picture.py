"""The picture of what was found: how often each transformation is told from none, with its interval."""

from pathlib import Path

from ..data.files import write_text
from ..report.drawings import templates
from .findings import Findings


def draw(found: Findings, path: Path, title: str) -> None:
    """Write the picture as SVG, which browsers show."""
    rows = sorted(found.elements, key=lambda element: -element.told.value)
    write_text(path, templates().get_template("symmetry.svg").render(title=title, elements=rows) + "\n")
