"""The one table of the front page, and the lines above it: each row is a `Front` among the rows of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from liespline.lab.sweep.study import Row
from liespline.lab.symmetry.statistics import holm
from studies.networks import ON_LAST, Ahead, Network, Results, ahead
from studies.tables import difference, points, table

HEAD = (
    "data (test n)", "liespline", "plain, same augmentation", "plain, equal GPU-time", "escnn, same recipe",
    "published (protocol = or ≠)", "parameters", "GPU-minutes", "paired Δ [95 %]",
)  # fmt: skip
DASH = "–"
JITTERED, POOLED, SPLINES = "‡", "¶", "§"
LEGEND = {
    JITTERED: "Trained with grid jitter, which is rotation augmentation; the plain network has the same rotations.",
    SPLINES: "A spline network on the trivial group, of the same architecture: not `nn.Conv2d`.",
    POOLED: "Pointwise on H: features of rotated copies are pooled, no group correlation relates them.",
}


@dataclass(frozen=True)
class Front(Row):
    """A row of the front page: `ours` beside `other`, the plain network with the same augmentation, and further ones.

    Cells of networks that were not run are dashes.
    """

    words: str = ""
    """The data, in a few words, and what part of them is scored."""
    timed: str = ""
    """The plain network that is trained for the GPU-time of ours."""
    escnn: str = ""
    """escnn's network, trained by the same recipe."""
    error: bool = False
    """Whether the error is shown, one minus the score."""
    published: str = ""
    """The published score, in per cent."""
    same_protocol: bool = False
    """Whether it was scored by the protocol of this row."""
    ordinary: bool = False
    """Whether the plain networks are `nn.Conv2d` with batch norm, and not splines on the trivial group."""
    reader: str = ""
    """Whose line above the table quotes this row: `escnn` or `pathologist`."""


@dataclass(frozen=True)
class Shown:
    """A row of the table with the results that it is filled from, and how its study is named on the command line."""

    row: Front
    results: Results
    word: str

    @property
    def networks(self) -> Mapping[str, Network]:
        """Those that have the measure."""
        return {name: one for name, one in self.results.networks.items() if self.row.measure in one.values}

    def score(self, name: str) -> str:
        """A cell: mean ± 95 %, or a dash."""
        network = self.networks.get(name)
        return DASH if network is None else network.cell(self.row.measure, self.row.error)

    def plain(self, name: str) -> str:
        """The cell of a plain network, with a mark where it is not an ordinary one."""
        score = self.score(name)
        return score if self.row.ordinary or score == DASH else f"{score} {SPLINES}"

    @property
    def marks(self) -> str:
        """What has to be known of our network."""
        config = self.networks[self.row.ours].runs[0]["config"]
        found = [JITTERED] * bool(config["training"].get("grid_jitter"))
        return "".join(f" {mark}" for mark in found + [POOLED] * (config["network"]["kernel"] == "pointwise"))

    @property
    def tested(self) -> str:
        """On how many images, and over how many seeds."""
        network = self.networks[self.row.ours]
        moved = self.row.measure.endswith(", transformed")
        images = network.first["transformed"]["images"] if moved else network.first["images"]
        of = "validation images, " if network.first["split"] == "valid" or self.row.measure == ON_LAST else ""
        seeds = len(network.runs)
        return f"{of}n = {images:,}, {seeds} seed{'s' * (seeds > 1)}"

    @property
    def ahead(self) -> Ahead | None:
        """How far ours is ahead of the plain network with the same augmentation."""
        found, row = self.networks, self.row
        return ahead(found[row.ours], found[row.other], row.measure) if row.other in found else None

    @property
    def minutes(self) -> str:
        """GPU-minutes of ours and of the plain network: of the fastest run, as others may have shared a machine."""
        sides = [self.networks[name] for name in (self.row.ours, self.row.other) if name in self.networks]
        on_cpu = not all("NVIDIA" in one.machine for one in sides)
        return " / ".join(f"{one.fastest:.1f}" for one in sides) + " on a CPU" * on_cpu

    @property
    def parameters(self) -> str:
        """Those of ours, and of the plain network if it differs by more than 3 %."""
        sides = [self.networks[name] for name in (self.row.ours, self.row.other) if name in self.networks]
        counts = [int(one.first["parameters"]) for one in sides]
        alike = max(counts) <= 1.03 * min(counts)
        return " / ".join(f"{count:,}" for count in counts[: 1 if alike else 2])


def shown(rows: Iterable[tuple[Row, Results, str]]) -> list[Shown]:
    """The rows of the front page whose own network was run, from rows of all studies with their results and names."""
    found = [Shown(row, results, word) for row, results, word in rows if isinstance(row, Front)]
    return [one for one in found if one.row.ours in one.networks]


def table_of(rows: Sequence[Shown]) -> str:
    """The table and what its marks mean; p is corrected by Holm's rule over its paired rows."""
    found = [one.ahead for one in rows]
    adjusted = iter(holm([one.p for one in found if one and one.p is not None]))
    lines = []
    for one, gap in zip(rows, found, strict=True):
        row, paired = one.row, gap is not None and gap.p is not None
        apart = "unpaired: " if gap and not paired else ""
        lines.append([
            f"{row.words} ({one.tested}): [`{one.word}`](docs/studies.md#{one.results.name})",
            f"{one.score(row.ours)}{one.marks}", one.plain(row.other), one.plain(row.timed), one.score(row.escnn),
            f"{row.published} ({'=' if row.same_protocol else '≠'})" if row.published else DASH,
            one.parameters, one.minutes, apart + difference(gap, next(adjusted) if paired else None) or DASH,
        ])  # fmt: skip
    text = "\n".join(table(HEAD, lines))
    return "\n\n".join([text, *(f"{mark} {words}" for mark, words in LEGEND.items() if f" {mark}" in text)])


def verdicts(rows: Sequence[Shown]) -> str:
    """The same rows in short: is ours ahead of the plain network, behind it, or is that undecided?"""
    lines = []
    for one, gap in ((one, one.ahead) for one in rows):
        if gap is None or gap.interval is None:
            continue
        word = "ahead" if gap.interval.low > 0 else "behind" if gap.interval.high < 0 else "undecided"
        study = f"[`{one.word}`](../studies.md#{one.results.name})"
        lines.append([f"{one.row.words} ({one.tested})", f"{points(gap.value, gap.interval)}", word, study])
    return "\n".join(table(["data (test n)", "equivariant − plain, points [95 %]", "verdict", "study"], lines))


def answers(rows: Sequence[Shown], fingerprint: str) -> str:
    """One line each for a user of escnn, a pathologist, and a reviewer."""
    of = {one.row.reader: one for one in reversed(rows)}
    return "\n".join(f"- **{who}** {words}" for who, words in (
        ("From escnn:", _beside_escnn(of.get("escnn"))),
        ("Tissue in any orientation:", _tissue(of.get("pathologist"))),
        ("For a reviewer:", "[the standard](docs/guide/evidence.md), one command for each row, and `python "
         "studies/report.py --check`, which makes every number again from `studies/results` "
         f"(fingerprint {fingerprint})."),
    ))  # fmt: skip


def _beside_escnn(one: Shown | None) -> str:
    """Error and time beside escnn's network, where it was run; what exports and compiles in any case."""
    text = (
        "networks save, pickle, export to plain convolutions and compile as one graph ([tried side by "
        "side](docs/guide/coming-from.md#what-was-seen))"
    )
    if one is None or one.row.escnn not in one.networks:
        return f"{text}; error and time on the same files by one recipe are a dash below until that study has run."
    pair = [one.networks[name] for name in (one.row.ours, one.row.escnn)]
    times = " beside ".join(f"{network.fastest:.1f}" for network in pair)
    return f"{one.row.words}: {one.score(one.row.ours)} beside {one.score(one.row.escnn)} in {times} minutes; {text}."


def _tissue(one: Shown | None) -> str:
    """The score, and how often a prediction changes when the patch is rotated."""
    if one is None:
        return "not run yet."
    sides = [one.networks[name] for name in (one.row.ours, one.row.other) if name in one.networks]
    scores = ", plain ".join(network.cell(one.row.measure) for network in sides)
    text = f"{one.row.words} {scores} ({one.tested})"
    shares = [network.changed for network in sides]
    if any(share is None for share in shares):
        return f"{text}; how often a prediction changes when a patch is rotated comes with the sealed test."
    changes = ", plain ".join(f"{100 * share:.1f} %" for share in shares if share is not None)
    return f"{text}. Predictions that change when a patch is rotated: {changes}."
