"""A pytest plugin: Hypothesis stops at the first failing example, where that one fails is all one wants to know."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "unshrunk",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
