"""The `liespline` command. Its commands import the heavy libraries they need, so that help is instant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..screen import Screen
from ..settings import ConfigError
from . import options as opt
from .data import data_app
from .errors import clear_messages, ended_in_order
from .figures import register
from .sweep import sweep

app = typer.Typer(
    name="liespline",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="B-spline group-equivariant CNNs: train, evaluate, look.\n\n"
    "Begin with **liespline demo**: it needs no data and takes under three minutes. Then train on your "
    "own images, one folder a class: **liespline train images --data DIR --group so2**.",
)
app.add_typer(data_app, name="data")
app.command()(sweep)
register(app)
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


@app.command()
def tasks() -> None:
    """List what can be trained."""
    from ..tasks import SUMMARIES

    table = Table(box=None)
    table.add_column("task", style="bold")
    table.add_column("what it is")
    for name, summary in SUMMARIES.items():
        table.add_row(name, summary)
    console.print(table)


@app.command()
def train(
    task: opt.MaybeTask = None,
    data: opt.Data = None,
    size: opt.Size = None,
    config: opt.ConfigFile = None,
    resume: opt.Resume = None,
    out: opt.Out = None,
    seed: opt.Seed = None,
    preset: opt.Preset = None,
    quiet: opt.Quiet = False,
    group: opt.GroupName = None,
    n_h: opt.NH = None,
    kernel: opt.Kernel = None,
    n_k: opt.NK = None,
    kernel_size: opt.KernelSize = None,
    stride: opt.Stride = None,
    scale: opt.Scale = None,
    widths: opt.Widths = None,
    weights: opt.Weights = None,
    epochs: opt.Epochs = None,
    batch: opt.Batch = None,
    optimiser: opt.Optimiser = None,
    lr: opt.Rate = None,
    decay: opt.Decay = None,
    augment: opt.Augment = None,
    no_rot90: opt.NoRot90 = False,
    patience: opt.Patience = None,
    precision: opt.Precision = None,
    accelerator: opt.Accelerator = None,
    devices: opt.Devices = None,
    nodes: opt.Nodes = None,
    workers: opt.Workers = None,
    compile: opt.Compile = None,
) -> None:
    """Train a network, test it, and write its report.

    Everything lands in one folder: config.yaml, metrics.jsonl, checkpoints, model.safetensors (the best
    network by validation), results.json and report.html. Killed at any moment, the run goes on with
    --resume FOLDER.

    Examples:

    - `liespline train images --data DIR --group so2`

    - `liespline train volumes --data FILE.npz --group so3 --n-h 24`

    - `liespline train --resume runs/images-so2`
    """
    from ..training.start import begin, go_on, start_config

    network: dict[str, Any] = {"group": group, "n_h": n_h, "kernel": kernel, "n_k": n_k, "kernel_size": kernel_size}
    network |= {"stride": stride, "scale": scale, "widths": parse_widths(widths), "weights": weights}
    training = {"epochs": epochs, "batch": batch, "optimiser": optimiser, "lr": lr, "decay": decay}
    training |= {"augment": "no-rot90" if no_rot90 else augment, "patience": patience, "precision": precision}
    training |= {"accelerator": accelerator, "devices": devices, "nodes": nodes, "workers": workers}
    training |= {"compile": compile}
    own = {"data": None if data is None else str(data), "size": size, "seed": seed, "preset": preset}
    changed = [k for part in (network, training, own) for k, v in part.items() if v is not None]
    if resume is not None and (changed or task or config or out):
        raise ConfigError(
            f"--resume {resume} goes on with that run as it was begun; leave out {', '.join(changed) or 'the rest'}"
        )
    if resume is not None:
        run = go_on(resume, progress=not quiet)
    else:
        chosen = start_config(task, config).updated(network, training, **own)
        run = begin(chosen, out, progress=not quiet)
    if run is not None:
        show_results(run.read_results("scores", "weights"), as_json=False)
        if run.report_file.is_file():  # one that was handed on without its network may have none
            console.print(f"report: {run.report_file}")


@app.command()
def evaluate(
    checkpoint: opt.Checkpoint,
    data: opt.Data = None,
    split: Annotated[str, typer.Option(metavar="train|valid|test", help="Which images.")] = "test",
    as_json: opt.Json = False,
) -> None:
    """Score a trained network on a split of its data, upright and moved."""
    from ..evaluation.evaluate import score_file

    show_results(score_file(checkpoint, data, split), as_json)


@app.command()
def predict(
    checkpoint: opt.Checkpoint,
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE…", help="PNG, JPEG or TIFF files.", show_default=False)
    ],
    as_json: opt.Json = False,
) -> None:
    """Print class and confidence of image files."""
    from ..evaluation.predict import predict_files

    rows = predict_files(checkpoint, images)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table()
    for name in ("image", "class", "confidence"):
        table.add_column(name, justify="right" if name == "confidence" else "left", overflow="fold")
    for row in rows:
        table.add_row(str(row["image"]), str(row["class"]), f"{100 * row['confidence']:.1f} %")
    console.print(table)


@app.command()
def equivariance(checkpoint: opt.Checkpoint, as_json: opt.Json = False) -> None:
    """Measure how far each layer of a trained network is from equivariant, element by element."""
    from ..evaluation.equivariance import measure

    rows = measure(checkpoint)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table(title="relative error of L(h·f) against h·L(f)")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "layer" else "right")
    for row in rows:
        table.add_row(*(f"{v:.2e}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)


@app.command()
def export(
    checkpoint: opt.Checkpoint,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the ONNX file.", show_default=False)],
) -> None:
    """Write a trained network as a plain convolutional one, for ONNX runtimes."""
    from ..evaluation.predict import export_onnx

    size = export_onnx(checkpoint, onnx)
    console.print(f"{onnx}: {size:,} bytes; input 'images', output 'logits', any batch size")


def show_results(results: dict[str, Any], as_json: bool) -> None:
    """The final numbers, for people or for programs."""
    if as_json:
        typer.echo(json.dumps(results, indent=1))
        return
    table = Table(show_header=False)
    for name, value in results["scores"].items():
        table.add_row(name, f"{value:.4f}" if name in ("loss", "auc") else f"{100 * value:.2f} %")
    if moves := results.get("moves"):
        table.add_row(f"accuracy over every {moves['axis']}", f"{100 * moves['mean_accuracy']:.2f} %")
        table.add_row("change of output when moved", f"{100 * moves['change']:.2f} %")
    table.add_row("weights", f"{results['weights']:,}")
    console.print(table)


def parse_widths(text: str | None) -> tuple[int, ...] | None:
    """`8,12,16` as numbers."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"widths {text!r}: expected whole numbers with commas, such as 8,12,16") from None


def main() -> None:
    """Run the command."""
    with ended_in_order(), clear_messages():
        app()
