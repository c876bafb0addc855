"""The `liespline` command. Its commands import the heavy libraries they need, so that help is instant."""

import importlib.metadata
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..screen import Screen, clear_messages, ended_in_order
from ..settings import ConfigError
from . import options as opt
from .data import data_app
from .nnunet import nnunet_app
from .predict import predict
from .sweep import sweep

app = typer.Typer(
    name="liespline",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="B-spline group-equivariant CNNs: train, evaluate, predict.\n\n"
    "Begin with **liespline demo**: it needs no data and takes under four minutes. Then train on your "
    "own images, one folder per class: **liespline train images --data DIR --group so2**.",
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"liespline {importlib.metadata.version('liespline')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.add_typer(data_app, name="data")
app.add_typer(nnunet_app, name="nnunet")
app.command()(sweep)
app.command()(predict)
console = Screen()


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the runs and the report go.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Train three networks of equal size on upright digits and test them on rotated ones.

    A plain 2-D network, the same with rotated training images, and an SE(2) network that never sees a rotated
    digit. Prints one table and writes OUT/report.html; fails if this run does not show what it is meant to show.
    """
    from ..demo import run_demo, shortfall

    if problem := shortfall(run_demo(out, seed, console)):
        raise ConfigError(problem)


@app.command(cls=opt.OptionsOfTask)
@opt.with_settings
def train(
    task: opt.Task = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Start from these settings, such as another run's config.yaml.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Resume this run; --epochs trains longer, --data may move.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/TASK-GROUP, numbered if taken.")
    ] = None,
    quiet: opt.Quiet = False,
    *,
    given: dict[str, Any],
) -> None:
    """Train a network, test it, and write its report. `liespline train TASK --help` shows the options of a task.

    One folder holds config.yaml, metrics.jsonl, checkpoints, model.safetensors (the best network by validation),
    results.json and report.html; a run that was killed resumes with --resume FOLDER.

    - `liespline train images --data DIR --group so2`

    - `liespline train volumes --data DIR --group so3 --elements 24`
    """
    from ..training.train import is_first, reopened, start, start_config
    from ..training.train import train as train_run

    if resume is not None:
        if extra := [name for name, value in (("task", task), ("--config", config), ("--out", out)) if value]:
            raise ConfigError(f"--resume {resume} resumes that run; leave out {extra[0]}")
        session = reopened(resume, given)
    else:
        chosen = start_config(task, config, given)
        if chosen.folds is not None and chosen.fold is None:
            from ..folds import train_folds

            folder = out or Path("runs") / f"{chosen.label}-{chosen.network.group}-{chosen.folds}-folds"
            show_folds(train_folds(chosen, folder, progress=not quiet), folder)
            return
        session = start(chosen, out)
    train_run(session, progress=not quiet)
    if is_first():
        show_results(session.results, as_json=False)
        if session.run.report_file.is_file():  # one that was handed on without its network may have none
            console.print(f"report: {session.run.report_file}")


@app.command()
def evaluate(
    checkpoint: opt.Checkpoint,
    data: opt.Data = None,
    labels: Annotated[Path | None, typer.Option(help="Table of that data's labels, if not where it was.")] = None,
    split: Annotated[
        str, typer.Option(metavar="train|valid|test|all", help="Which images; all scores a whole set.")
    ] = "test",
    resize: opt.Resize = False,
    any_size: opt.AnySize = False,
    layers: Annotated[bool, typer.Option("--layers", help="Also how far each layer is from equivariant.")] = False,
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For masks: table of Dice and surface distances per case.")
    ] = None,
    largest: opt.Largest = False,
    as_json: opt.Json = False,
) -> None:
    """Score a trained network on a split of its data, upright and transformed.

    With --layers, also the error of each layer relative to the standard deviation of its feature maps: 0 is exact. The
    floor is what interpolation alone costs.
    """
    from ..evaluation.external import score_file

    results, remarks = score_file(
        checkpoint, data, split, labels, opt.other_sizes(resize, any_size), layers, cases, largest
    )
    for remark in remarks:
        Screen(stderr=True).print(remark)
    show_results(results, as_json)


@app.command()
def export(
    checkpoint: opt.Checkpoint,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write an ONNX file.")] = None,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Sample the kernels in the graph: a file about as large as the parameters."),
    ] = False,
    wsinfer: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to write for WSInfer and QuPath.")] = None,
    spacing_um: Annotated[
        float | None, typer.Option(help="For WSInfer: micrometres per pixel of the network's input.")
    ] = None,
) -> None:
    """Write a trained network as a plain convolutional one, for ONNX runtimes, or for WSInfer and QuPath."""
    if (onnx is None) == (wsinfer is None) or (spacing_um is None) != (wsinfer is None) or (compact and onnx is None):
        raise ConfigError("say --onnx FILE, --compact if it is to be small, or --wsinfer DIR --spacing-um 0.5")
    if onnx is not None:
        from ..evaluation.onnx_file import export_onnx

        size = export_onnx(checkpoint, onnx, compact=compact)
        console.print(f"{onnx}: {size:,} bytes; input 'images', output 'logits', any batch size")
    if wsinfer is not None and spacing_um is not None:
        from ...integrations.wsinfer import write_wsinfer
        from ..runs.trained import load

        trained = load(checkpoint)
        shape, kind = (trained.signature.in_channels, *trained.signature.space), trained.signature.kind
        if kind != "classes" or shape != (3, shape[-1], shape[-1]):
            raise ConfigError(
                f"{checkpoint}: takes {shape}, gives {kind}; WSInfer takes square patches in colour, and gives classes"
            )
        write_wsinfer(trained.network, wsinfer, trained.classes, shape[-1], spacing_um)
        console.print(f"{wsinfer}: torchscript_model.pt and config.json, for patches of {shape[-1]} pixels")


def show_folds(found: dict[str, Any], folder: Path) -> None:
    """Mean and spread of the runs of `--folds`."""
    table = Table("score", "mean", "standard deviation")
    for name, value in found["scores"].items():
        table.add_row(name, f"{value:.4f}", f"{found['deviation'][name]:.4f}")
    console.print(table)
    console.print(f"report: {folder / 'report.html'}")


def show_results(results: dict[str, Any], as_json: bool) -> None:
    """The final numbers, for people or for programs."""
    if as_json:
        typer.echo(json.dumps(results, indent=1))
        return
    from ..screen import LAYER_COLUMNS, layer_cells, rows_of

    table = Table(show_header=False)
    for row in rows_of(results):
        table.add_row(*row)
    console.print(table)
    if "equivariance" in results:
        table = Table(title="error of L(h·f) against h·L(f), over the standard deviation of h·L(f)")
        for name in LAYER_COLUMNS:
            table.add_column(name, justify="left" if name in ("layer", "kind") else "right")
        for layer in results["equivariance"]:
            table.add_row(*layer_cells(layer))
        console.print(table)


def main() -> None:
    with ended_in_order(), clear_messages():
        app()
