"""What goes into a network and what comes out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from ..data import DataError, Split
from ..data.value_range import ValueRange
from ..settings.words import shown


@dataclass(frozen=True)
class Signature:
    """What goes into a network and what comes out."""

    in_channels: Annotated[int, Field(ge=1, le=4096)]
    space: Annotated[tuple[int, ...], Field(min_length=1, max_length=3)]
    classes: Annotated[tuple[str, ...], Field(min_length=1)]
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

    @model_validator(mode="after")
    def _fits_together(self) -> Signature:
        if self.values and len(self.values) != len(self.classes):
            raise ValueError(f"{len(self.values)} values of masks for {len(self.classes)} classes")
        if self.whole and (len(self.whole) != len(self.space) or any(map(int.__gt__, self.space, self.whole))):
            raise ValueError(f"{self.space} cut out of {self.whole}")
        return self

    @staticmethod
    def of(split: Split) -> Signature:
        """The signature that a split of data asks for."""
        scaling: tuple[tuple[float, float], ...] = ()
        if split.kind == "numbers":
            values = split.targets.double()
            spread = values.std(0, correction=0).clamp_min(1e-12)
            scaling = tuple(zip(values.mean(0).tolist(), spread.tolist(), strict=True))
        return Signature(
            split.in_channels, tuple(split.space), tuple(split.classes), split.side, split.kind, scaling,
            split.values, split.voxels, whole=split.whole,
        )  # fmt: skip

    @staticmethod
    def from_dict(values: Any, where: str) -> Signature:
        """Read it back from a file."""
        try:
            known = values.get("value_range")
            known = None if known is None else ValueRange.from_dict(known, values["in_channels"])
            return Signature(**{**values, "value_range": known})
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise DataError(f"{where}: does not say what the network takes and gives ({shown(error)})") from error
