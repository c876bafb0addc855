"""Hundreds of damaged files, each given to its reader: `python reliability/corpus.py [--seed N] [--rounds N]`."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import chdir
from pathlib import Path

from table import Findings

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.append(str(Path(__file__).parent.parent))  # where studies/ is
from lab.damaged import DAMAGES, KINDS, judge


def main() -> None:
    """Damage a file of every kind in every way, with other draws in each round, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    findings = Findings(
        "damaged files: empty, cut, bits flipped, of another type, pickled code",
        f"python reliability/corpus.py --seed {asked.seed} --rounds {asked.rounds}",
    )
    begun, found = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for kind, files in KINDS.items():
            honest = Path(folder) / f"honest {kind}"
            honest.mkdir()
            files.make(honest)
            for number in range(asked.rounds):
                for how in DAMAGES:
                    verdict, said = judge(kind, how, honest, Path(folder) / "damaged", asked.seed + number)
                    found[verdict] += 1
                    if verdict == "WRONG":
                        print(f"{kind}, {how}: {said[:500]}", flush=True)
        findings.wrong_acceptances = found["WRONG"] + len(list(Path(folder).rglob("CODE-HAS-RUN")))
    findings.cases = findings.faults = found.total()
    findings.remarks = (
        f"{len(KINDS)} kinds of files; {found['refused']} refused by name, {found['sound']} still sound and read as "
        "such; no code run"
    )
    findings.seconds = round(time.monotonic() - begun, 1)
    findings.write("corpus")
    sys.exit(not findings.clean)


if __name__ == "__main__":
    main()
