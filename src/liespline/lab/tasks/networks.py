"""What goes into a network and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data import DataError, Split
from ..data.value_range import ValueRange


@dataclass(frozen=True)
class Signature:
    """What goes into a network and what comes out."""

    in_channels: int
    space: tuple[int, ...]
    classes: tuple[str, ...]
    spacing: float | None = None
    """For volumes of their own spacing: the side in millimetres that voxels were brought to."""
    kind: str = "classes"
    """What comes out: one of classes, any of tags, numbers, or points."""
    scaling: tuple[tuple[float, float], ...] = ()
    """Mean and standard deviation of each number in training."""
    values: tuple[int, ...] = ()
    """For masks: what files hold for each class; 0, 1, … where nothing is said."""
    voxels: float | None = None
    """For volumes of their own spacing: the side in millimetres of the usual voxel in training, as it is stored."""
    value_range: ValueRange | None = None
    """The range of values in training; None where it was not kept, and for volumes normalised each by itself."""
    whole: tuple[int, ...] = ()
    """Sides of the stored images whose middle is what goes in; none where that is all of them."""

    @staticmethod
    def of(split: Split) -> Signature:
        """The signature that a split of data asks for."""
        scaling: tuple[tuple[float, float], ...] = ()
        if split.kind == "numbers":
            values = split.targets.double()
            spread = values.std(0, correction=0).clamp_min(1e-12)
            scaling = tuple((float(mean), float(std)) for mean, std in zip(values.mean(0), spread, strict=True))
        return Signature(
            split.in_channels, tuple(split.space), tuple(split.classes), split.side, split.kind, scaling,
            split.values, split.voxels, whole=split.whole,
        )  # fmt: skip

    @staticmethod
    def from_dict(values: Any, where: str) -> Signature:
        """Read it back from a file."""
        try:
            space = tuple(int(size) for size in values["space"])
            side = values.get("spacing")
            classes = tuple(map(str, values["classes"]))
            kind, scaling = str(values.get("kind", "classes")), values.get("scaling", ())
            scaling = tuple((float(mean), float(std)) for mean, std in scaling)
            held, voxels = tuple(int(value) for value in values.get("values", ())), values.get("voxels")
            channels, known = int(values["in_channels"]), values.get("value_range")
            whole = tuple(int(size) for size in values.get("whole", ()))
            signature = Signature(
                channels, space, classes, None if side is None else float(side), kind, scaling, held,
                None if voxels is None else float(voxels),
                None if known is None else ValueRange.from_dict(known, channels), whole,
            )  # fmt: skip
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise DataError(f"{where}: does not say what the network takes and gives ({error!r})") from error
        if not 1 <= len(space) <= 3 or not 1 <= signature.in_channels <= 4096 or not signature.classes:
            raise DataError(f"{where}: describes no images: {signature}")
        if held and len(held) != len(classes):
            raise DataError(f"{where}: describes no images: {signature}")
        if whole and (len(whole) != len(space) or any(n > m for n, m in zip(space, whole, strict=True))):
            raise DataError(f"{where}: describes {space} cut out of {whole}")
        return signature
