"""What goes into a network and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data import DataError, Split


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
        space, classes = tuple(split.space), tuple(split.classes)
        return Signature(split.in_channels, space, classes, split.side, split.kind, scaling, split.whole)

    @staticmethod
    def from_dict(values: Any, where: str) -> Signature:
        """Read it back from a file."""
        try:
            space = tuple(int(size) for size in values["space"])
            side = values.get("spacing")
            classes = tuple(map(str, values["classes"]))
            kind, scaling = str(values.get("kind", "classes")), values.get("scaling", ())
            scaling = tuple((float(mean), float(std)) for mean, std in scaling)
            whole = tuple(int(size) for size in values.get("whole", ()))
            signature = Signature(
                int(values["in_channels"]), space, classes, None if side is None else float(side), kind, scaling, whole
            )
        except (TypeError, KeyError, ValueError) as error:
            raise DataError(f"{where}: does not say what the network takes and gives ({error!r})") from error
        if not 1 <= len(space) <= 3 or not 1 <= signature.in_channels <= 4096 or not signature.classes:
            raise DataError(f"{where}: describes no images: {signature}")
        if whole and (len(whole) != len(space) or any(n > m for n, m in zip(space, whole, strict=True))):
            raise DataError(f"{where}: describes {space} cut out of {whole}")
        return signature
