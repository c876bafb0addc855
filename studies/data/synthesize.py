"""Draw synthetic tissue or faces in the official files' format: `python -m studies.data.synthesize pcam|celeba OUT`."""

from __future__ import annotations

from typing import Annotated

import typer

from liespline.lab.settings import one_of

from ..command import Target, console, progress_bar, run
from .synthetic import faces, tissue


def main(
    task: Annotated[str, typer.Argument(metavar="pcam|celeba", show_default=False)],
    out: Target,
    seed: Annotated[int, typer.Option(help="Seed of the drawing.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes that draw.")] = 1,
    count: Annotated[
        int | None,
        typer.Option(help="pcam: training patches (a quarter as many again to validate, and to test); celeba: people."),
    ] = None,
) -> None:
    """Draw synthetic tissue (pcam) or faces (celeba) in the official files' format."""
    one_of("task to synthesize", task, ["pcam", "celeba"])
    with progress_bar() as report:
        if task == "pcam":
            sizes = {} if count is None else {"train": count, "valid": count // 4, "test": count // 4}
            tissue.synthesize(out, **sizes, seed=seed, jobs=jobs, progress=report)
        else:
            sizes = {} if count is None else {"identities": count}
            faces.synthesize(out, **sizes, seed=seed, jobs=jobs, progress=report)
    console.print(f"{out}: synthetic {task} files")


if __name__ == "__main__":
    run(main)
