"""`liespline data symmetry`: which symmetries do the data have?"""

from .findings import Findings, look

__all__ = ["Findings", "look"]
