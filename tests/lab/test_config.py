"""Configurations: written, read back, made up by Hypothesis, and refused with the near miss."""

from dataclasses import replace
from importlib.metadata import version

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.damaged import CONFIG
from liespline.lab.data import DataError
from liespline.lab.runs.folder import Run
from liespline.lab.settings import SETTINGS, Config, ConfigError, Network, Training
from liespline.lab.tasks import find_task
from liespline.lab.tasks.defaults import DEFAULTS, OPTIONS
from liespline.lab.training.train import start_config

GOOD = Config(task="images", data="a b/ü", network=Network(widths=(3, 5)), training=Training(lr=1e-4))


def test_yaml_is_what_a_person_would_write_and_gives_the_same_configuration_back():
    assert Config.from_yaml(GOOD.to_yaml(), "here") == GOOD
    written = yaml.safe_load(GOOD.to_yaml())
    assert written["network"]["widths"] == [3, 5]
    assert written["training"]["lr"] == 1e-4
    by_hand = "task: digits\ntraining: {lr: 1e-3, epochs: 3}\n"
    assert Config.from_yaml(by_hand, "here").training.lr == 0.001


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task: digits\nnetwork: {grupo: so2}", ["grupo", "Did you mean 'group'?"]),
        ("task: digits\nnetwork: {group: so4}", ["so4", "so2", "Did you mean"]),
        ("task: digits\ntraining: {epochs: two}", ["epochs", "two", "a whole number"]),
        ("task: digits\ntraining: {epochs: true}", ["epochs", "a whole number"]),
        ("task: digits\ntraining: {epochs: 0}", ["epochs = 0", "from 1"]),
        ("task: digits\ntraining: {lr: -1}", ["lr = -1"]),
        ("task: digits\ntraining: {lr: .nan}", ["lr = nan"]),
        ("task: digits\ntraining: {batch_size: 33, devices: 2}", ["batch_size = 33", "multiple"]),
        ("task: digits\nnetwork: {widths: 5}", ["widths", "list"]),
        ("task: digits\nnetwork: {widths: []}", ["widths"]),
        ("task: digits\nnetwork: {widths: [4, 1000000000]}", ["widths", "8,192"]),
        ("task: digits\nnetwork: {elements: 1000000000}", ["elements", "1,000"]),
        ("task: digits\nnetwork: {basis: 0}", ["basis = 0: must be from 1 to 1,000"]),
        ("data: x", ["'task' is missing"]),
        ("- 1\n- 2", ["expected 'name: value' lines", "list"]),
        ("task: [", ["not valid YAML"]),
        ("!!python/object/apply:os.system ['true']", ["not valid YAML"]),
        ("task: digits\nseed: -1", ["seed"]),
        ("task: digits\nseed: " + "9" * 5000, ["a number of over 4,300 digits"]),
        ("task: digits\nseed: 0x" + "9" * 5000, ["seed", "must be at least 0"]),
        ("task: images\nlabel_type: tag", ["choose one of classes, tags, numbers", "Did you mean 'tags'?"]),
        ("task: volumes\nintensity_range: '5'", ["intensity_range = '5': expected LOW,HIGH, such as -160,240"]),
        ("task: digits\ntraining: [1]", ["training", "'name: value' lines"]),
        ("task: images\nfolds: 2", ["folds = 2: must be from 3 to 100"]),
        ("task: images\nfold: 2", ["fold = 2: say --folds too"]),
        ("task: images\nfolds: 4\nfold: 5", ["fold = 5: with --folds 4 it is at most 4"]),
        ("task: digits\nnetwork: {n_h: 8}", ["'n_h' is called 'elements' now"]),
    ],
)
def test_mistakes_are_named(text, words):
    with pytest.raises(ConfigError) as caught:
        Config.from_yaml(text, "runs/x/config.yaml")
    for word in words:
        assert word in str(caught.value)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Config.load(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="no configuration"):
        Config.from_yaml("a" * 200_000, "here")


@pytest.mark.parametrize("task", [None, *DEFAULTS])
def test_options_have_the_words_of_their_settings(liespline, task):
    """Options, help and defaults follow from the one definition; without a task, options of all tasks are shown."""
    _, manual = liespline("train", *([task] if task else []), "--help")
    for name, setting in SETTINGS.items():
        lines = [line for line in manual.splitlines() if f"│ --{name.replace('_', '-')} " in line]
        taken = name in OPTIONS.get(task, ()) or not setting.special
        assert len(lines) == (taken and not setting.advanced), name
        assert all(setting.about in line for line in lines)
        if task and not isinstance(default := DEFAULTS[task][name], bool | None):
            assert all(f"default: {default}]" in line for line in lines)


def test_a_short_file_leaves_the_rest_to_the_task(tmp_path):
    file = tmp_path / "short.yaml"
    file.write_text("task: digits\nseed: 3\ntraining: {epochs: 2}\n")
    assert start_config(None, file, {"elements": 4}) == DEFAULTS["digits"].updated(seed=3, epochs=2, elements=4)
    file.write_text("task: digits\nnetwork: 3\n")
    with pytest.raises(ConfigError, match="network = 3"):
        start_config(None, file, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "task: segment\nnetwork: {stride: 2}",
            "--set stride=… does nothing for task segment, only for digits, .*images",
        ),
        ("task: digits\npreset: released", "--preset does nothing for task digits.*; leave out preset"),
        ("task: digits\nlabels: table.csv", "--labels does nothing for task digits, only for images, volumes, segment"),
        ("task: landmarks\nnetwork: {network: resnet}", "--network does nothing for task landmarks"),
    ],
)
def test_what_does_nothing_for_a_task_is_refused_where_it_was_given(tmp_path, text, words):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        start_config(None, tmp_path / "config.yaml", {})
    given = yaml.safe_load(text)
    task = given.pop("task")
    with pytest.raises(ConfigError, match=words):
        start_config(task, None, given.get("network", given))
    assert Config.from_yaml(text, "here").task == task, "what a run once began with is read"


@pytest.mark.parametrize("task", DEFAULTS)
def test_the_defaults_of_a_task_are_its_own(task):
    assert find_task(task).defaults is DEFAULTS[task]
    assert Config.from_yaml(DEFAULTS[task].to_yaml(), "here") == DEFAULTS[task]


def test_the_version_is_shown(liespline):
    assert liespline("--version") == (0, f"liespline {version('liespline')}\n")


def test_the_help_asks_for_a_list_of_numbers_nowhere(liespline):
    """Widths, the one setting that is a list, are no option."""
    assert "N,N" not in liespline("train", "--help")[1]


def test_the_file_of_a_run_holds_what_applies_to_it(tmp_path):
    kept = []
    for task in ("digits", "volumes", "studies.paper.pcam:PCAM"):
        run = Run.create(tmp_path / task, find_task(task).defaults.updated(data="x"))
        assert Run.open(run.path)[1] == find_task(task).defaults.updated(data="x")
        kept.append(yaml.safe_load(run.config_file.read_text()))
    assert ["spacing" in values for values in kept] == [False, True, False]
    assert ["preset" in values for values in kept] == [False, False, True]
    assert not any("patch" in values for values in kept)
    assert all("widths" in values["network"] for values in kept)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


class Refusal(str):
    """What was said in place of an answer."""


def read_or_refusal(read):
    try:
        return read()
    except (DataError, ConfigError) as error:
        return Refusal(error)


@settings(max_examples=150)
@given(st.data())
def test_made_up_settings(data):
    """A configuration with some values replaced by anything is checked, or refused by name."""
    values = yaml.safe_load(CONFIG.to_yaml())
    for _ in range(data.draw(st.integers(1, 3))):
        part = values[data.draw(st.sampled_from(["network", "training"]))] if data.draw(st.booleans()) else values
        if isinstance(part, dict):
            part[data.draw(st.sampled_from(sorted(part) or ["elements"]) | st.text(max_size=5))] = data.draw(VALUES)
    found = read_or_refusal(lambda: Config.from_dict(values, "here"))
    assert found.startswith("here") if isinstance(found, Refusal) else replace(found) == found
