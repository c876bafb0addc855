"""How a layer is computed: every path gives the same numbers, to rounding. `decide` chooses, the others compute."""

from .decide import use
from .plan import Plan, plan_of

__all__ = ["Plan", "plan_of", "use"]
