"""The faults of `make mutations` can be planted: what they replace still stands in the code, and their tests exist."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
class Ring:
    @property
    def size(self):
        return sum(
            part.size
            for part in self.parts
        )

    def other(self):
        return sum(part.size for part in self.parts)

LIMIT = 3 + 4
"""


@pytest.fixture
def reliability(monkeypatch: pytest.MonkeyPatch):
    """Modules of the folder by their names; forgotten afterwards, for these names are common."""
    monkeypatch.syspath_prepend(str(ROOT / "reliability"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (ROOT / "reliability" / f"{name}.py").is_file():
            del sys.modules[name]


def test_every_fault_can_be_planted(reliability) -> None:
    mutations = reliability("mutations")
    gone = []
    for fault in mutations.FAULTS:
        try:
            fault.planted((ROOT / "src" / "liespline" / fault.file).read_text())
        except (OSError, ValueError) as error:
            gone.append(str(error))
        if not any(fault.file.startswith(start) for start in mutations.NEAREST):
            gone.append(f"{fault.place}: no tests are nearest")
    assert not gone
    named = {name for names in mutations.NEAREST.values() for name in names} | {*mutations.LAB}
    named |= {fault.test.split("::")[0] for fault in mutations.FAULTS if fault.test}
    assert not [name for name in sorted(named) if not (ROOT / "tests" / f"{name}.py").is_file()]
    single = [fault.test.split("[")[0].split("::") for fault in mutations.FAULTS if "::" in fault.test]
    assert not [test for name, test in single if f"def {test}(" not in (ROOT / "tests" / f"{name}.py").read_text()]


def test_a_fault_finds_its_function_wherever_it_stands(reliability) -> None:
    Fault = reliability("fault").Fault
    right = "sum(part.size for part in self.parts)"
    broken = Fault("file.py::Ring.size", right, "0", "one function alone, its lines broken anyhow").planted(CODE)
    assert "return 0" in broken
    assert right in broken  # that of the other function
    assert "3 - 4" in Fault("file.py::LIMIT", "3 + 4", "3 - 4", "constants too").planted("import math\n" + CODE)
    for place, old, new, why in (
        ("Ring.sizes", right, "0", "there is no sizes"),
        ("Ring", right, "0", "stands 2 times"),
        ("LIMIT", "5", "0", "stands 0 times"),
        ("LIMIT", "3 + 4", "3 +", "is no Python"),
        ("LIMIT", "3 + 4", "(3 + 4)", "changes nothing"),
    ):
        with pytest.raises(ValueError, match=why):
            Fault(f"file.py::{place}", old, new, "").planted(CODE)
