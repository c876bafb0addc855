"""How a layer is computed: every path gives the same numbers, to rounding. `decide` chooses, the others compute."""

from .decide import correlate, lift, use
from .dense import kernel, lift_kernel
from .plan import Plan, plan_of

__all__ = ["Plan", "correlate", "kernel", "lift", "lift_kernel", "plan_of", "use"]
