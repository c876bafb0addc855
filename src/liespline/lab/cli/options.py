"""The options of the commands; those of a run follow from its settings, and each task shows its own."""

import functools
import inspect
from collections.abc import Callable, Iterable
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from ..settings import SETTINGS, Config, ConfigError, one_of, renamed, written
from ..settings.definition import Setting
from ..tasks.defaults import DEFAULTS, OPTIONS

TASKS = ", ".join(DEFAULTS)
Task = Annotated[str | None, typer.Argument(metavar="TASK", help=f"{TASKS}, or your own: module:NAME or FILE.py:NAME.")]
Data = Annotated[Path | None, typer.Option(help="Folder or file with the task's data, if not where it was.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
Resize = Annotated[
    bool, typer.Option("--resize", help="Bring images of another size to that of training, as --size does in training.")
]
AnySize = Annotated[bool, typer.Option("--any-size", help="Take images of another size than in training as they are.")]
Largest = Annotated[bool, typer.Option("--largest-component", help="For masks: keep each class's largest component.")]
Engine = Annotated[str, typer.Option(metavar="processes|ray|slurm", help="Who does them: this machine, or a cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Checkpoint = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, or its model.safetensors.", show_default=False)
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as stride=2; as often as needed."),
]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


INSTEAD = {_option(key): f"is no option of its own: say {one.option}" for key, one in SETTINGS.items() if one.advanced}
INSTEAD |= {_option(old): f"is called {SETTINGS[now].option} now" for old, now in renamed.SETTINGS.items()}
"""What is no option, and what to say instead."""


def other_sizes(resize: bool, any_size: bool) -> Literal["refuse", "resize", "any"]:
    """What is done with images of another size than in training."""
    if resize and any_size:
        raise ConfigError("--resize scales images, --any-size takes them as they are; leave one of them out")
    return "resize" if resize else "any" if any_size else "refuse"


class OptionsOfTask(TyperCommand):
    """A command whose help shows the options of the task that is its first argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse, in words, options of before and those that are `--set`; then parse as ever."""
        ctx.meta["task"] = args[0] if args and not args[0].startswith("-") else None
        for word in args:
            if instead := INSTEAD.get(option := word.partition("=")[0]):
                raise ConfigError(f"{option} {instead}")
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """All options, those hidden that do nothing for the task; with the task's own defaults in their help."""
        task = ctx.meta.get("task")
        defaults, taken = known(task) if task else (None, ())
        params: list[Any] = [copy(one) for one in super().get_params(ctx)]
        for param in params:
            if setting := SETTINGS.get(param.name):
                param.help, param.hidden = about(setting, defaults), setting.special and setting.name not in taken
        return params


def known(task: str) -> tuple[Config, tuple[str, ...]]:
    """The defaults of a task and the special settings that it takes; that of a module is imported."""
    if task in DEFAULTS:
        return DEFAULTS[task], OPTIONS[task]
    from ..tasks import find_task

    found = find_task(task)
    return found.defaults, found.options


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option per setting, and --set; it takes what the user named as the dictionary `given`."""
    names = [name for name, one in SETTINGS.items() if not one.advanced]

    @functools.wraps(command)
    def run(set: list[str] | None, **values: Any) -> None:
        found = {name: values.pop(name) for name in names}
        given = {name: SETTINGS[name].read(value) for name, value in found.items() if value is not None}
        command(**values, given=given | settings_in(set or ()))

    own = inspect.signature(command, eval_str=True).parameters.values()
    set_ = inspect.Parameter("set", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Set)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*(one for one in own if one.name != "given"), set_, *(_parameter(SETTINGS[name]) for name in names)]
    )
    return run


def settings_in(words: Iterable[str]) -> dict[str, Any]:
    """What `--set NAME=VALUE` says."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"--set {word}: expected NAME=VALUE, such as --set stride=2")
        name = name.strip().replace("-", "_")
        if name in renamed.SETTINGS:
            raise ConfigError(f"--set {word}: {name!r} is called {renamed.SETTINGS[name]!r} now")
        found[name] = SETTINGS[one_of("--set", name, SETTINGS)].read(text)
    return found


def about(setting: Setting, defaults: Config | None) -> str:
    """What `--help` says of a setting: its meaning, its choices, and the default of the task, or of all tasks."""
    usual = {plain(config[setting.name]) for config in ([defaults] if defaults else DEFAULTS.values())}
    facts = [] if setting.metavar else [", ".join(setting.choices)]
    facts += [f"default: {value}" for value in usual if value and len(usual) == 1]
    return setting.about + (f" \\[{'; '.join(filter(None, facts))}]" if any(facts) else "")


def plain(value: object) -> str:
    """A default as the help and the docs show it: nothing for none, and for a switch."""
    return "" if isinstance(value, bool) or value is None else written(value, ",")


def _parameter(setting: Setting) -> inspect.Parameter:
    option = typer.Option(
        setting.option, metavar=setting.metavar or ("NAME" if setting.choices else None), help=setting.about,
        rich_help_panel=setting.part.capitalize() or "Data", show_default=False,
    )  # fmt: skip
    kind: Any = bool if setting.kind is bool else str
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
