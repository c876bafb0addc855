"""The options of the commands; those of a run follow from its settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from ..settings import SETTINGS, ConfigError
from ..settings.definition import Setting
from ..settings.old import RENAMED
from ..tasks.defaults import DEFAULTS, takers

TaskName = Annotated[str, typer.Argument(help="What to train; `liespline tasks` lists them.", show_default=False)]
MaybeTask = Annotated[str | None, typer.Argument(metavar="TASK", help="What to train; `liespline tasks` lists them.")]
OLD_OPTIONS = {
    "--" + old.replace("_", "-"): SETTINGS[now].option + (" 1" if now == "grid_jitter" else "")
    for old, now in RENAMED.items()
}
Data = Annotated[Path | None, typer.Option(help="Folder or file with the task's data, if not where it was.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
Resize = Annotated[
    bool, typer.Option("--resize", help="Bring images of another size to that of training, as --size does in training.")
]
AnySize = Annotated[
    bool, typer.Option("--any-size", help="Run the network on images of another size than in training as they are.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Checkpoint = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, or its model.safetensors.", show_default=False)
]


class Renamed(TyperCommand):
    """A command that knows how its options were called before, and says how they are called now."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an old name; everything else is as in any command."""
        for name in (arg.partition("=")[0] for arg in args):
            if now := OLD_OPTIONS.get(name):
                raise ConfigError(f"{name} is called {now} now")
        return super().parse_args(ctx, args)


def other_sizes(resize: bool, any_size: bool) -> Literal["refuse", "resize", "any"]:
    """What is done with images of another size than in training."""
    if resize and any_size:
        raise ConfigError("--resize scales images, --any-size takes them as they are; leave one of them out")
    return "resize" if resize else "any" if any_size else "refuse"


def with_settings(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option per setting; it takes those that the user named as the dictionary `given`."""
    names = [name for name in SETTINGS if name not in left_out]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            found = {name: values.pop(name) for name in names}
            command(**values, given={name: value for name, value in found.items() if value is not None})

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [parameter for parameter in own if parameter.name != "given"]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*parameters, *(_parameter(SETTINGS[name]) for name in names)]
        )
        return run

    return decorate


def about(setting: Setting) -> str:
    """What `--help` says of a setting: its meaning, where it applies, and its default."""
    tasks = takers(setting.name)
    only = f" Only for {' and '.join(tasks)}." if 0 < len(tasks) < 3 else ""
    usual = default(setting)
    return f"{setting.about}{only}" + ("" if setting.default is None and usual == "none" else f" \\[default: {usual}]")


def default(setting: Setting) -> str:
    """The default in words, and the tasks that have another."""
    own = {task: config[setting.name] for task, config in DEFAULTS.items() if config[setting.name] != setting.default}
    return "; ".join([_plain(setting.default), *(f"{task} {_plain(value)}" for task, value in own.items())])


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, tuple) else "none" if value is None else f"{value}"


def _parameter(setting: Setting) -> inspect.Parameter:
    panel = "Machine" if setting.machine else setting.part.capitalize() or None
    names = [setting.option + "/--no-" + setting.option[2:]] if setting.kind is bool else [setting.option]
    metavar = setting.metavar or "|".join(setting.choices) or ("N,N,…" if setting.kind is str else None)
    option = typer.Option(*names, metavar=metavar, help=about(setting), rich_help_panel=panel, show_default=False)
    kind: Any = setting.kind
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
