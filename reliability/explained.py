"""Why changes that no test sees are none: random changes of the core that give the same program."""

EXPLAINED: dict[str, str] = {}
"""By file and changed line."""
