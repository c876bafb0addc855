"""The options of the commands; those of a run follow from its settings, and each task shows its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from ..settings import SETTINGS, ConfigError, one_of
from ..settings.definition import Setting
from ..settings.old import RENAMED
from ..tasks.defaults import DEFAULTS, OPTIONS, SUMMARIES, takers

TASKS = ", ".join(SUMMARIES)
Task = Annotated[
    str | None,
    typer.Argument(metavar="TASK", help=f"{TASKS}; or a task of your own, module:NAME or FILE.py:NAME."),
]
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
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as stride=2; may be given several times."),
]

COMMON = {name: one for name, one in SETTINGS.items() if not (one.special or one.advanced)}
BY_OPTION = {"--" + name.replace("_", "-"): one for name, one in SETTINGS.items()}
OLD_OPTIONS = {"--" + old.replace("_", "-"): SETTINGS[now] for old, now in RENAMED.items()}


def other_sizes(resize: bool, any_size: bool) -> Literal["refuse", "resize", "any"]:
    """What is done with images of another size than in training."""
    if resize and any_size:
        raise ConfigError("--resize scales images, --any-size takes them as they are; leave one of them out")
    return "resize" if resize else "any" if any_size else "refuse"


class OptionsOfTask(TyperCommand):
    """A command whose options are those of the task that is its first argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse, in words, options of before, of other tasks, and those that are `--set`; then parse as ever."""
        task = args[0] if args and not args[0].startswith("-") else None
        ctx.meta["task"] = task
        for word in args:
            _refuse(word.partition("=")[0], task)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """All but the options that do nothing for the task."""
        task = ctx.meta.get("task")
        shown = COMMON.keys() | (options_of(task) if task else {name for names in OPTIONS.values() for name in names})
        return [
            _for_task(one, task) if one.name in SETTINGS else one
            for one in super().get_params(ctx)
            if one.name not in SETTINGS or one.name in shown
        ]


def _for_task(option: Any, task: str | None) -> Any:
    """The option, with the task's own default in its help."""
    own = copy(option)
    own.help = about(SETTINGS[option.name], task)
    return own


def _refuse(word: str, task: str | None) -> None:
    if word in OLD_OPTIONS:
        raise ConfigError(f"{word} is called {OLD_OPTIONS[word].option} now")
    found = BY_OPTION.get(word)
    if found is None:
        return
    if found.advanced:
        raise ConfigError(f"{word} is no option of its own: say {found.option}")
    if found.special and task in OPTIONS and found.name not in OPTIONS[task]:
        only = f", only for {', '.join(takers(found.name))}" if takers(found.name) else ""
        raise ConfigError(f"{word} does nothing for task {task}{only}; leave it out")


def options_of(task: str) -> set[str]:
    """The special settings that a task takes; that of a module is imported."""
    if task in OPTIONS:
        return set(OPTIONS[task])
    from ..tasks import find_task

    return set(find_task(task).options)


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option per setting, and --set; it takes what the user named as the dictionary `given`."""
    names = [name for name, one in SETTINGS.items() if not one.advanced]

    @functools.wraps(command)
    def run(set: list[str] | None, **values: Any) -> None:
        found = {name: values.pop(name) for name in names}
        given = {name: value for name, value in found.items() if value is not None}
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
        if name in RENAMED:
            raise ConfigError(f"--set {word}: {name!r} is called {RENAMED[name]!r} now")
        found[name] = SETTINGS[one_of("--set", name, SETTINGS)].read(text)
    return found


def about(setting: Setting, task: str | None) -> str:
    """What `--help` says of a setting: its meaning, its choices, and the default of the task, or of all tasks."""
    facts = ", ".join(setting.choices)
    usual = default(setting, task)
    facts += ("; " if facts and usual else "") + (f"default: {usual}" if usual else "")
    return setting.about + (f" \\[{facts}]" if facts else "")


def default(setting: Setting, task: str | None) -> str:
    """The default in words; where no task is named, of each task that has its own."""
    if task in DEFAULTS:
        return _plain(DEFAULTS[task][setting.name])
    own = {name: config[setting.name] for name, config in DEFAULTS.items() if config[setting.name] != setting.default}
    words = [_plain(setting.default) or ("none" if own else ""), *(f"{name} {_plain(own[name])}" for name in own)]
    return "; ".join(filter(None, words))


def _plain(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, tuple) else f"{value}"


def _parameter(setting: Setting) -> inspect.Parameter:
    panel = "Machine" if setting.machine else setting.part.capitalize() or "Data"
    metavar = setting.metavar or ("NAME" if setting.choices else None)
    option = typer.Option(
        setting.option, metavar=metavar, help=about(setting, None), rich_help_panel=panel, show_default=False
    )
    kind: Any = setting.kind
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
