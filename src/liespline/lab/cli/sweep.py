"""`liespline sweep`: many runs, each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

console = Screen()


def sweep(
    task: opt.TaskName,
    data: opt.Data = None,
    chosen: Annotated[str, typer.Option("--set", metavar="NAME", help="Which runs, as the task names them.")] = "paper",
    out: Annotated[Path | None, typer.Option(help="Folder of the runs; default runs/sweep-TASK-SET.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each network, with seeds 0, 1, …")] = 3,
    jobs: Annotated[int, typer.Option(help="Runs at the same time.")] = 1,
    preset: opt.Preset = None,
    epochs: opt.Epochs = None,
    batch: opt.Batch = None,
    lr: opt.Rate = None,
    precision: opt.Precision = None,
    accelerator: opt.Accelerator = None,
    workers: opt.Workers = None,
    compile: opt.Compile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and what is left to do.")] = False,
) -> None:
    """Do all runs of a set, each once: finished ones are skipped, killed ones go on where they were."""
    from ..sweep.pool import plan
    from ..sweep.pool import sweep as do_all

    changes = {"epochs": epochs, "batch": batch, "lr": lr, "precision": precision, "accelerator": accelerator}
    changes |= {"workers": workers, "compile": compile}
    own = {"data": None if data is None else str(data), "preset": preset}
    planned = plan(task, chosen, out or Path(f"runs/sweep-{task}-{chosen}"), seeds, changes, own)
    if dry_run:
        for entry in planned:
            console.print(f"{entry.name}: {'done' if entry.run.complete else 'to do'}")
        return
    failed = do_all(planned, jobs, lambda name, what: console.print(f"{name}: {what}"))
    if failed:
        raise ConfigError(f"{len(failed)} of {len(planned)} runs failed: {', '.join(failed)}; start the sweep again")
