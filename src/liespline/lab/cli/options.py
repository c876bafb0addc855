"""The options of `liespline train`, one type each, with the words that `--help` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..settings import ACCELERATORS, GROUPS, KERNELS, OPTIMISERS, PRECISIONS, PRESETS

NETWORK, TRAINING, MACHINE = "Network", "Training", "Machine"


def _choices(values: tuple[str, ...]) -> str:
    return "|".join(values)


TaskName = Annotated[str, typer.Argument(help="What to train; `liespline tasks` lists them.", show_default=False)]
MaybeTask = Annotated[str | None, typer.Argument(metavar="TASK", help="What to train; `liespline tasks` lists them.")]
Data = Annotated[Path | None, typer.Option(help="Folder or file with the task's data.")]
Size = Annotated[int | None, typer.Option(help="Scale images of mixed sizes to this side.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Start from the config.yaml of another run instead of the task's defaults."),
]
Resume = Annotated[
    Path | None,
    typer.Option(help="Go on with this run from its last complete checkpoint; no other option is needed."),
]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; default runs/TASK-GROUP, numbered if taken.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.")]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar=_choices(PRESETS),
        help="For pcam and celeba: as the text says, or as the released scripts did.",
    ),
]
GroupName = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar=_choices(GROUPS),
        help="What the network is equivariant to.",
        rich_help_panel=NETWORK,
    ),
]
NH = Annotated[int | None, typer.Option("--n-h", help="Number of group elements.", rich_help_panel=NETWORK)]
Kernel = Annotated[
    str | None,
    typer.Option(metavar=_choices(KERNELS), help="Kind of kernel on the group.", rich_help_panel=NETWORK),
]
NK = Annotated[int | None, typer.Option("--n-k", help="Number of splines on the group.", rich_help_panel=NETWORK)]
KernelSize = Annotated[int | None, typer.Option(help="Side of the kernels in samples.", rich_help_panel=NETWORK)]
Stride = Annotated[
    int | None,
    typer.Option(help="Keep every so many-th sample in the first layer, for large images.", rich_help_panel=NETWORK),
]
Scale = Annotated[float | None, typer.Option(help="For celeba: the smallest scale.", rich_help_panel=NETWORK)]
Widths = Annotated[
    str | None,
    typer.Option(metavar="N,N,…", help="Channels of each layer, such as 8,12,16.", rich_help_panel=NETWORK),
]
Weights = Annotated[
    int | None,
    typer.Option(help="Scale the widths so that the network has about this many weights.", rich_help_panel=NETWORK),
]
Epochs = Annotated[int | None, typer.Option(help="Times to go through the images.", rich_help_panel=TRAINING)]
Batch = Annotated[int | None, typer.Option(help="Images in a batch, over all devices.", rich_help_panel=TRAINING)]
Optimiser = Annotated[
    str | None, typer.Option(metavar=_choices(OPTIMISERS), help="How to step.", rich_help_panel=TRAINING)
]
Rate = Annotated[float | None, typer.Option("--lr", help="Learning rate.", rich_help_panel=TRAINING)]
Decay = Annotated[float | None, typer.Option(help="Decoupled weight decay.", rich_help_panel=TRAINING)]
Augment = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Augmentation: none, or one the task offers (rotate, zoom, …).",
        rich_help_panel=TRAINING,
    ),
]
NoRot90 = Annotated[
    bool,
    typer.Option("--no-rot90", help="For pcam: augment without quarter turns.", rich_help_panel=TRAINING),
]
Patience = Annotated[
    int | None,
    typer.Option(help="Stop after so many epochs without a better validation score.", rich_help_panel=TRAINING),
]
Precision = Annotated[
    str | None, typer.Option(metavar=_choices(PRECISIONS), help="Number format.", rich_help_panel=MACHINE)
]
Accelerator = Annotated[
    str | None,
    typer.Option(metavar=_choices(ACCELERATORS), help="Where to compute.", rich_help_panel=MACHINE),
]
Devices = Annotated[int | None, typer.Option(help="Processes (GPUs) on this machine.", rich_help_panel=MACHINE)]
Nodes = Annotated[int | None, typer.Option(help="Machines, when started by torchrun or srun.", rich_help_panel=MACHINE)]
Workers = Annotated[int | None, typer.Option(help="Reader processes; 0 reads between steps.", rich_help_panel=MACHINE)]
Compile = Annotated[bool | None, typer.Option(help="Compile the network with torch.compile.", rich_help_panel=MACHINE)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Checkpoint = Annotated[
    Path, typer.Argument(metavar="CKPT", help="A run's folder, or its model.safetensors.", show_default=False)
]
