"""The faults of `make mutations` can be planted: what they replace still stands in the code, and their tests exist."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_every_fault_can_be_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "reliability"))
    import mutations

    gone = []
    for fault in mutations.FAULTS:
        text = (ROOT / ("" if fault.file.startswith("studies/") else "src/liespline") / fault.file).read_text()
        if text.count(fault.old) != 1 or fault.new == fault.old:
            gone.append(f"{fault.what}: {fault.old!r} stands {text.count(fault.old)} times in {fault.file}")
    assert not gone
    named = {name for names in mutations.NEAREST.values() for name in names} | {*mutations.LAB}
    named |= {fault.test.split("::")[0] for fault in mutations.FAULTS if fault.test}
    assert not [name for name in sorted(named) if not (ROOT / "tests" / f"{name}.py").is_file()]
    for name in ("mutations", "planted", "record", *(part.__name__ for part in mutations.PARTS)):
        sys.modules.pop(name, None)
