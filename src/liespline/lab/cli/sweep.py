"""`liespline sweep`: all runs of a study, each exactly once."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt

console = Screen()
# What differs between the runs of a study, and what would make them all the same.
CHOSEN_BY_STUDY = ("group", "elements", "kernel", "basis", "scale", "augment", "preset", "seed", "init_from")


def sweep(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A file like studies/rotmnist.py, or a module.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the runs; default runs/STUDY.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="File of their results; default results/FILE.jsonl beside the study.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Runs of each network, with seeds 0, 1, …; default as the study says.")
    ] = None,
    engine: opt.Engine = "processes",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at the same time; by default one here, and as many as fit on a cluster."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and what is left to do.")] = False,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Though the source has uncommitted changes; the results say so.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder or file with the study's data.")] = None,
    settings: opt.Set = None,
) -> None:
    """Train all networks of a study from several seeds, and keep the results as one line of JSON per run.

    Each run is done once: finished runs are skipped, killed runs continue where they were.
    """
    from ..runs.folder import STAMP_COMMAND, git_commit
    from ..runs.line import check_committed
    from ..sweep.plan import Results, plan
    from ..sweep.plan import sweep as do_all
    from ..sweep.study import find_study

    given: dict[str, Any] = opt.settings_in(settings or ()) | ({} if data is None else {"data": str(data)})
    if taken := [name for name in CHOSEN_BY_STUDY if name in given]:
        raise ConfigError(f"--set {taken[0]}={given[taken[0]]}: the networks of a study differ in it; leave it out")
    found = find_study(study)
    kept = Results(results or found.results, found, uncommitted)
    planned = plan(found.study, out or Path("runs") / found.name, seeds or found.study.seeds, given)
    left = {entry.name: entry for entry in kept.without(planned)}
    for entry in planned:
        if dry_run or entry.name not in left:
            done = entry.name not in left or entry.run.complete
            where = "" if entry.name in left else f", in {kept.path}"
            console.print(f"{entry.name}: {f'done{where}' if done else 'to do'}")
    if dry_run:
        return
    check_committed(commit := git_commit(), uncommitted)
    if commit is None and left:
        console.print(f"results: will name a version and no commit; in a copy of the source, first: {STAMP_COMMAND}")

    def report(name: str, what: str) -> None:
        console.print(f"{name}: {what}")
        if what.startswith("done"):
            kept.add(left[name])

    failed = do_all(list(left.values()), report, jobs, engine)
    console.print(f"results: {kept.path}")
    if failed:
        raise ConfigError(f"{len(failed)} of {len(planned)} runs failed: {', '.join(failed)}; start the sweep again")
