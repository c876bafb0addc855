"""`liespline sweep`: many runs, each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

console = Screen()
# What differs between the runs of a set, and what would make them all the same.
CHOSEN_BY_SET = ("group", "n_h", "kernel", "n_k", "scale", "augment", "seed", "start_from")


@opt.with_settings(*CHOSEN_BY_SET)
def sweep(
    task: Annotated[str, typer.Argument(help="What to train, or `records`: ours beside plain networks.")],
    chosen: Annotated[str, typer.Option("--set", metavar="NAME", help="Which runs, as the task names them.")] = "paper",
    out: Annotated[Path | None, typer.Option(help="Folder of the study; default runs/sweep-TASK-SET.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each network, with seeds 0, 1, …")] = 3,
    engine: Annotated[
        str, typer.Option(metavar="processes|ray|slurm", help="Who does them: this machine, or a cluster.")
    ] = "processes",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at the same time; by default one here, and as many as fit on a cluster."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and what is left to do.")] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Do all runs of a set, each once: finished runs are skipped, killed runs continue where they were.

    The sets of `records` train our networks and plain ones of equal weights by one recipe, and write a table of them,
    results.md: `liespline sweep records --set rotmnist --data MNIST`.
    """
    from ..sweep.plan import plan
    from ..sweep.plan import sweep as do_all
    from ..sweep.records import RECORDS
    from ..sweep.records_page import write_records_page
    from ..sweep.study import write_study
    from ..tasks import find_task

    label = task
    if task != RECORDS:
        defaults = find_task(task).defaults
        task, label = defaults.task, defaults.label
    folder = out or Path(f"runs/sweep-{label}-{chosen}")
    planned = plan(task, chosen, folder, seeds, given)
    if dry_run:
        for entry in planned:
            console.print(f"{entry.name}: {'done' if entry.run.complete else 'to do'}")
        return
    write_study(folder, task, chosen, seeds, given)

    def report(name: str, what: str) -> None:
        console.print(f"{name}: {what}")
        if task == RECORDS and what == "done":
            write_records_page(folder)

    failed = do_all(planned, report, jobs, engine)
    if task == RECORDS:
        console.print(f"table: {write_records_page(folder)}")
    if failed:
        raise ConfigError(f"{len(failed)} of {len(planned)} runs failed: {', '.join(failed)}; start the sweep again")
