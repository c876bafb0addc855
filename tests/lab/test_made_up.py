"""Configurations with values that Hypothesis makes up: read, or refused in words."""

from dataclasses import replace

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.kinds_of_files import CONFIG
from liespline.lab.data import DataError
from liespline.lab.settings import Config, ConfigError

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
