"""x."""

from fault import Fault

FAULTS: list[Fault] = []
