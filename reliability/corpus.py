"""Hundreds of broken and hostile files, each given to its reader: `python reliability/corpus.py [--seed N]`."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from record import Findings

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.append(str(Path(__file__).parent.parent))  # where studies/ is
from lab.hostile import MEMORY, SECONDS, all_cases, judge


def main() -> None:
    """Make each file, have it read with bounded memory and time, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    seed = parser.parse_args().seed
    print(f"seed {seed}", flush=True)
    findings = Findings(
        "broken and hostile files: cut, flipped, oversized, of wrong type, pointing outside, carrying code",
        f"python reliability/corpus.py --seed {seed}",
    )
    begun, found, kinds = time.monotonic(), Counter[str](), set()
    with tempfile.TemporaryDirectory() as folder:
        for case in all_cases():
            verdict, said = judge(case, Path(folder), seed)
            found[verdict] += 1
            kinds.add(case.kind)
            if verdict not in ("refused", "sound"):
                print(f"{verdict}: {case.kind}, {case.how}: {said[:500]}", flush=True)
    findings.cases = findings.faults = found.total()
    findings.crashes, findings.hangs, findings.wrong_acceptances = (found[v] for v in ("CRASH", "HANG", "WRONG"))
    findings.remarks = (
        f"{len(kinds)} kinds of files; {found['refused']} refused by name, {found['sound']} still sound and read as "
        f"such; at most {MEMORY >> 20} MiB and {SECONDS} s per file; no code run"
    )
    findings.seconds = round(time.monotonic() - begun, 1)
    findings.write("corpus")
    sys.exit(not findings.clean)


if __name__ == "__main__":
    main()
