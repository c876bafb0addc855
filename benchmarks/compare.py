"""Two trees of the library in one run, by turns, so that a busy machine slows both alike.

    git archive 2f593bb src | tar x -C build/old          # the tree to compare with
    python benchmarks/compare.py --old build/old/src --device cpu
    python benchmarks/compare.py --old build/old/src --device cuda --result ratios.json

Each row is the median over rounds of new / old seconds: below 1 the new tree is faster. `--apart` gives every row of
each tree a process of its own: all compile at once and measure by turns, in a minute or two on a GPU with many cores.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent


class Tree:
    """A process that measures steps of one tree, one at a time."""

    def __init__(self, source: Path, device: str, seconds: float) -> None:
        environment = os.environ | {"PYTHONPATH": f"{source.resolve()}:{HERE}:{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, str(HERE / "compare.py"), "--serve", device, "--seconds", str(seconds)]
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.tell("")  # answers where it comes from once it is there

    def tell(self, row: str) -> None:
        """Send a row's name, or with a `+` before it to be prepared."""
        assert self.process.stdin is not None
        print(row, file=self.process.stdin, flush=True)

    def ask(self, row: str) -> str:
        """Send a row's name, and return the answer."""
        self.tell(row)
        return self.answer()

    def answer(self) -> str:
        """Return the answer to what was told."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        """Let it go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(device: str, seconds: float) -> None:
    """Answer each name on a line with the median seconds of its step."""
    import torch

    import liespline
    from steps import steps
    from timing import times

    answers, sys.stdout = sys.stdout, sys.stderr  # what else is printed is no answer
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    made, known = {}, steps(device)
    for line in sys.stdin:
        name, answer = line.strip(), str(Path(liespline.__file__).parent)
        torch.backends.cudnn.benchmark = not name.startswith("+")  # algorithms are tried alone on the device
        if name:
            try:
                if name.startswith("+"):
                    made, answer = _prepared(name[1:], known[name[1:]]()), "prepared"
                else:
                    made = made if name in made else {name: known[name]()}  # one at a time: memory
                    for step in made.values():
                        getattr(step, "plainly", lambda: None)()  # and not while a graph is recorded
                    answer = str(times(made, device, seconds)[name])
            except Exception as error:
                answer = f"failed: {error!r}".replace("\n", " ")
        print(answer, file=answers, flush=True)


def _prepared(name: str, step: Any) -> dict[str, Any]:
    """What is worth keeping once everything is compiled: a compiled network; layers are made again when alone."""
    getattr(step, "once", step)()
    return {name: step} if hasattr(step, "once") else {}


def compare(arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Measure all rows in both trees."""
    sources = arguments.old, arguments.new
    code = "import steps, sys; print(*steps.steps(sys.argv[1]), sep='\\n')"
    listed = subprocess.run(
        [sys.executable, "-c", code, arguments.device], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": f"{Path(arguments.new).resolve()}:{HERE}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    names = [name for name in listed.stdout.splitlines() if any(part in name for part in arguments.only.split(";"))]
    count = len(names) if arguments.apart else 1
    trees = [[Tree(Path(s), arguments.device, arguments.seconds) for s in sources] for _ in range(count)]
    found = [[tree.answer() for tree in pair] for pair in trees]
    print("\n".join(found[0]))
    pairs = dict(zip(names, trees if arguments.apart else trees * len(names), strict=True))
    if arguments.apart:
        for name, pair in pairs.items():
            for tree in pair:
                tree.tell(f"+{name}")
        for name, pair in pairs.items():
            print(f"{name:60s} {', '.join(tree.answer() for tree in pair)}", flush=True)
    rows = []
    for name, pair in pairs.items():
        answers = [tuple(tree.ask(name) for tree in pair) for _ in range(arguments.rounds)]
        rows.append(_row(name, answers))
        if arguments.result is not None:
            write(arguments.result, arguments.device, rows)
        if arguments.apart:
            for tree in pair:
                tree.process.kill()
    if not arguments.apart:
        for tree in trees[0]:
            tree.end()
    return rows


def _row(name: str, answers: list[tuple[str, ...]]) -> dict[str, object]:
    try:
        pairs = [(float(a), float(b)) for a, b in answers]
    except ValueError:
        print(f"{name:60s} {answers[0]}", flush=True)
        return {"what": name, "problem": answers[0]}
    ratios = sorted(b / a for a, b in pairs)
    old, new = (median(pair[i] for pair in pairs) for i in range(2))
    print(f"{name:60s} {1e3 * old:9.3f} ms {1e3 * new:9.3f} ms  new/old {median(ratios):.3f}", flush=True)
    return {"what": name, "ratio": median(ratios), "least": ratios[0], "most": ratios[-1], "old": old, "new": new}


def write(path: Path, device: str, rows: list[dict[str, object]]) -> None:
    """With the facts."""
    from timing import facts

    path.write_text(json.dumps({"facts": facts(device), "rows": rows}, indent=1) + "\n")


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="the other tree's src folder")
    parser.add_argument("--new", default="src")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="for one row of one tree in one round")
    parser.add_argument("--only", default="", help="rows whose name contains this, or one of these between semicolons")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--apart", action="store_true", help="a process for every row of each tree, for a GPU")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.seconds)
        return
    if arguments.old is None:
        parser.error("--old names the src folder of the tree to compare with")
    compare(arguments)


if __name__ == "__main__":
    main()
