"""Change the core at random places, one at a time, and see whether the tests that run the changed line notice.

    python reliability/mutants.py --number 300 --seed 35

Changes are those of cosmic-ray's operators, and two of our own: a statement removed, two arguments swapped. A place is
drawn evenly from all that some test runs, then one of its changes. The fastest tests of the line come first.
"""

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from scipy.stats import binomtest

from explained import EXPLAINED
from mutations import ROOT, Copy
from record import Findings

ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
BITS = {"BitOr", "BitAnd", "BitXor"}
# What is the same by definition, and what needs arguments.
SAME = {"Is_Eq", "Eq_Is", "IsNot_NotEq", "NotEq_IsNot"}
FEWEST, FEW, LONG = 4, 25, 90.0  # tests at first, and next; seconds of all of them, where they are more


class RemoveStatement(Operator):
    """An assignment or a call whose value nobody takes becomes `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and node.children[0].type in ("expr_stmt", "atom_expr", "power"):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return parso.parse(node.get_first_leaf().prefix + "pass\n")

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapArguments(Operator):
    """The first two arguments of a call without names change places."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "arglist" and node.parent.type == "trailer" and len(self._unnamed(node)) > 1:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        first, second = self._unnamed(node)[:2]
        node.children[first], node.children[second] = node.children[second], node.children[first]
        return node

    def _unnamed(self, node: Any) -> list[int]:
        return [i for i, one in enumerate(node.children) if one.type not in ("operator", "argument")]

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Mutant(NamedTuple):
    """One change: the file, the line, the operator and which of its changes in this file it is."""

    file: str
    line: int
    operator: str
    number: int


def operators() -> dict[str, Operator]:
    """By name, those that change what a program does and not only its kind of numbers."""
    chosen: dict[str, Operator] = {"RemoveStatement": RemoveStatement(), "SwapArguments": SwapArguments()}
    for name in operator_names():
        short = name.removeprefix("core/")
        kind, _, change = short.partition("_")
        pair = set(change.split("_"))
        if kind == "ReplaceBinaryOperator" and not (pair <= ARITHMETIC or pair <= BITS):
            continue
        if change not in SAME and not kind.startswith(("Variable", "RemoveDecorator")):
            chosen[short] = get_operator(name)()
    return chosen


def beside_the_code(source: str) -> set[int]:
    """Lines of annotations and signatures without defaults, which nothing reads when the program runs."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            lines |= set(range(node.lineno, int(node.end_lineno or 0) + 1))
        if isinstance(node, ast.FunctionDef) and not (node.args.defaults or any(node.args.kw_defaults)):
            lines |= set(range(node.lineno, node.body[0].lineno))
    return lines


def places(folder: Path, lines: dict[str, dict[str, list[str]]]) -> tuple[list[list[Mutant]], int]:
    """The changes at every place that some test runs, and how many places none does."""
    found, unseen, known = [], 0, operators()
    for file in sorted(lines):
        source = (folder / "src" / "liespline" / file).read_text()
        here: dict[tuple[Any, Any], list[Mutant]] = defaultdict(list)
        nodes, skipped = list(ast_nodes(get_ast(source))), beside_the_code(source)
        for name, operator in known.items():
            positions = [position for node in nodes for position in operator.mutation_positions(node)]
            for number, (start, stop) in enumerate(positions):
                if start[0] not in skipped:
                    here[start, stop].append(Mutant(file, start[0], name, number))
        for (start, stop), changes in sorted(here.items()):
            seen = any(str(line) in lines[file] for line in range(start[0], stop[0] + 1))
            found += [changes] if seen else []
            unseen += not seen
    return found, unseen


def covering(copy: Copy, into: Path) -> dict[str, Any]:
    """Which tests run which lines; looked at once per commit."""
    if not into.exists():
        into.parent.mkdir(parents=True, exist_ok=True)
        drawn = "core/test_properties"  # slow to fail
        tests = [f"tests/{name}.py" for name in copy.everything() if not name.startswith(drawn)]
        here = str(Path(__file__).parent)
        changes = {"PYTHONPATH": f"{copy.folder / 'src'}:{here}", "COVERING": str(into), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "covering", "-p", "no:cacheprovider", *tests]
        subprocess.run(command, cwd=copy.folder, env=os.environ | changes, check=False, stdout=subprocess.DEVNULL)
    return json.loads(into.read_text())


def tests_of(mutant: Mutant, seen: dict[str, Any]) -> list[str]:
    """The tests that run its line, fastest first; those that run anything of its file for lines run at import."""
    lines = seen["lines"][mutant.file]
    tests = set(lines.get(str(mutant.line), ())) or {test for line in lines.values() for test in line}
    tests = {test for test in tests if "\\" not in test}  # pytest does not find these again by their names
    return sorted(tests, key=seen["seconds"].__getitem__)


def lives(copy: Copy, mutant: Mutant, changed: str, seen: dict[str, Any]) -> bool:
    """Plant the change, and say whether no test that runs it fails."""
    path, tests, spent = copy.source(mutant.file), tests_of(mutant, seen), 0.0
    for count, test in enumerate(tests):
        spent += seen["seconds"][test]
        if spent > LONG and count >= FEW:
            tests = tests[:count]
            break
    batches = tests[:FEWEST], tests[FEWEST:FEW], tests[FEW:]
    right = path.read_text()
    path.write_text(changed)
    try:
        return all(_pass(copy, batch, seen) for batch in batches if batch)
    finally:
        path.write_text(right)


def _pass(copy: Copy, tests: list[str], seen: dict[str, Any]) -> bool:
    """Whether they pass; a change may give tests other names, then all of their files have to."""
    names = [test.removeprefix("tests/").replace(".py", "", 1) for test in tests]
    try:
        return copy.passes(names, 60 + round(4 * sum(map(seen["seconds"].__getitem__, tests))))
    except RuntimeError:
        return copy.passes(sorted({name.partition("::")[0] for name in names}))


def draw(copy: Copy, chances: list[list[Mutant]], number: int, seed: int) -> Iterator[tuple[Mutant, str]]:
    """So many different mutants that are Python, with the changed source."""
    generator, found = random.Random(seed), set[Mutant]()
    while len(found) < number:
        mutant = generator.choice(generator.choice(chances))
        source = copy.source(mutant.file).read_text()
        changed = mutate_code(source, operators()[mutant.operator], mutant.number)
        if mutant in found or changed is None or not _another(source, changed):
            continue
        found.add(mutant)
        yield mutant, changed


def _another(source: str, changed: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != ast.dump(ast.parse(changed))
    except SyntaxError:
        return False


def lines_of(source: str, changed: str) -> tuple[str, str]:
    """The first line that differs, before and after."""
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    return next(((old.strip(), new.strip()) for old, new in pairs if old != new), ("", ""))


def main() -> None:
    """Try random changes and write down how many live."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=35)
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], cwd=ROOT, capture_output=True, text=True)
    started, survivors = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        seen = covering(copy, ROOT / "build" / "covering" / f"{commit.stdout.strip()}.json")
        chances, unseen = places(copy.folder, seen["lines"])
        print(f"{len(chances):,} places that tests run, {unseen:,} that none does", flush=True)
        kinds: Counter[str] = Counter()
        for count, (mutant, changed) in enumerate(draw(copy, chances, arguments.number, arguments.seed), 1):
            kinds[mutant.operator.partition("_")[0]] += 1
            before, after = lines_of(copy.source(mutant.file).read_text(), changed)
            alive = lives(copy, mutant, changed, seen)
            said = f"{count:4} {'LIVES ' if alive else 'killed'} {time.monotonic() - started:6.0f} s"
            print(f"{said}  {mutant.file}:{mutant.line} {mutant.operator}: {before} → {after}", flush=True)
            if alive:
                survivors.append({"place": f"{mutant.file}:{mutant.line}", "before": before, "after": after})
    for one in survivors:
        one["why"] = EXPLAINED.get(f"{one['place'].partition(':')[0]}: {one['after']}", "a test is missing")
    missing = [one for one in survivors if one["why"] == "a test is missing"]
    interval = binomtest(len(survivors), arguments.number).proportion_ci(method="wilson")
    Findings(
        "random changes of the core, one at a time",
        f"python reliability/mutants.py --number {arguments.number} --seed {arguments.seed}",
        cases=arguments.number,
        faults=arguments.number,
        wrong_acceptances=len(missing),
        remarks=f"{len(survivors)} lived ({100 * interval.low:.1f} to {100 * interval.high:.1f} %), "
        f"{len(survivors) - len(missing)} equivalent; no test runs {unseen:,} of {unseen + len(chances):,} places",
        seconds=round(time.monotonic() - started, 1),
    ).write("mutants", survivors=survivors, operators=dict(kinds))


if __name__ == "__main__":
    main()
