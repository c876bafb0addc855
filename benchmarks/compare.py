"""Two trees of the library in one run, by turns, so that a busy machine slows both alike.

    git archive 2f593bb src | tar x -C build/old          # the tree to compare with
    python benchmarks/compare.py --old build/old/src --device cpu
    python benchmarks/compare.py --old build/old/src --device cuda --result ratios.json

Each row is the median over rounds of new / old seconds: below 1 the new tree is faster.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent


class Tree:
    """A process that measures steps of one tree, one at a time."""

    def __init__(self, source: Path, device: str, seconds: float) -> None:
        environment = os.environ | {"PYTHONPATH": f"{source.resolve()}:{HERE}"}
        command = [sys.executable, str(HERE / "compare.py"), "--serve", device, "--seconds", str(seconds)]
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.source = self.ask("")

    def ask(self, row: str) -> str:
        """Send a row's name, and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(row, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


def serve(device: str, seconds: float) -> None:
    """Answer each name on a line with the median seconds of its step."""
    import torch

    import liespline
    from steps import steps
    from timing import times

    answers, sys.stdout = sys.stdout, sys.stderr  # what else is printed is no answer
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    made, known = {}, steps(device)
    for line in sys.stdin:
        name, answer = line.strip(), str(Path(liespline.__file__).parent)
        if name:
            try:
                made = made if name in made else {name: known[name]()}  # one at a time: memory
                answer = str(times(made, device, seconds)[name])
            except Exception as error:
                answer = f"failed: {error!r}".replace("\n", " ")
        print(answer, file=answers, flush=True)


def compare(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Measure all rows in both trees."""
    os.environ["PYTHONPATH"] = f"{Path(arguments.new).resolve()}:{HERE}"
    old, new = (Tree(Path(source), arguments.device, arguments.seconds) for source in (arguments.old, arguments.new))
    print(f"old: {old.source}\nnew: {new.source}")
    code = "import steps, sys; print(*steps.steps(sys.argv[1]), sep='\\n')"
    listed = subprocess.run([sys.executable, "-c", code, arguments.device], capture_output=True, text=True, check=True)
    rows = []
    for name in listed.stdout.splitlines():
        if arguments.only not in name:
            continue
        answers = [(old.ask(name), new.ask(name)) for _ in range(arguments.rounds)]
        try:
            pairs = [(float(a), float(b)) for a, b in answers]
            ratio = median(b / a for a, b in pairs)
            row = {"what": name, "ratio": ratio, "old": median(a for a, _ in pairs), "new": median(b for _, b in pairs)}
            print(f"{name:60s} {1e3 * row['old']:9.3f} ms {1e3 * row['new']:9.3f} ms  new/old {ratio:.3f}", flush=True)
        except ValueError:
            row = {"what": name, "problem": answers[0]}
            print(f"{name:60s} {answers[0]}", flush=True)
        rows.append(row)
    for tree in (old, new):
        assert tree.process.stdin is not None
        tree.process.stdin.close()
        tree.process.wait()
    return rows


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="the other tree's src folder")
    parser.add_argument("--new", default="src")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="for one row of one tree in one round")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.seconds)
        return
    if arguments.old is None:
        parser.error("--old names the src folder of the tree to compare with")
    rows = compare(arguments)
    if arguments.result is not None:
        from timing import facts

        arguments.result.write_text(json.dumps({"facts": facts(arguments.device), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
