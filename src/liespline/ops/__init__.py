"""What layers are computed by: a folder per operator, and `choose`, which decides; all ways give the same numbers."""

from .choose import use
from .plan import Plan, plan_of

__all__ = ["Plan", "plan_of", "use"]
