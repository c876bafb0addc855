"""Pack what the runs of a sweep left behind into one file, without weights and logs.

    timeout 500 liespline sweep pcam --set short --seeds 3 --data PCAM --out STUDY --jobs 8
    python experiments/pack.py STUDY pcam.tar --commit $(git rev-parse HEAD)

`timeout` ends a sweep wherever it is: runs that are finished count, and those under way are packed too, as stopped
runs. Unpacked below `experiments/`, the file is a study; `study.yaml` wants a word of what was done, `about`.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

KEPT = ("config.yaml", "environment.json", "metrics.jsonl", "results.json")


def kept(study: Path) -> Iterator[Path]:
    """The study's own file, and those of its runs; runs that ended before their first epoch have nothing to say."""
    yield study / "study.yaml"
    for metrics in sorted(study.glob("runs/*/*/metrics.jsonl")):
        if metrics.stat().st_size:
            yield from (file for name in KEPT if (file := metrics.with_name(name)).exists())


def content(file: Path, commit: str | None) -> bytes:
    """A file as it is; a run made outside a checkout, where no commit can be read, gets the one that is named."""
    text = file.read_text(encoding="utf-8")
    if file.name == "environment.json" and commit is not None:
        environment = json.loads(text)
        text = json.dumps(environment | {"commit": environment["commit"] or commit}, indent=1)
    return text.encode()


def pack(study: Path, out: Path, commit: str | None) -> int:
    """Write the archive; the number of files in it."""
    files = list(kept(study))
    with tarfile.open(out, "w:gz" if out.suffix == ".gz" else "w") as archive:
        for file in files:
            data = content(file, commit)
            entry = tarfile.TarInfo(str(Path(study.name) / file.relative_to(study)))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return len(files)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--commit")
    asked = parser.parse_args()
    print(f"{pack(asked.study, asked.out, asked.commit)} files in {asked.out}")
