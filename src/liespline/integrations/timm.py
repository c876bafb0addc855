"""timm's registry with `models.resnet`: import this module, then `timm.create_model("lie_resnet_so2_8")`.

Features leave the group by its maximum: for maps that rotate with the image take `models.unet`, not a decoder on them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from timm.models import generate_default_cfgs, register_model
from timm.models._builder import build_model_with_cfg
from timm.models._features import feature_take_indices
from torch import Tensor, nn
from torch.nn import functional as F

from ..grids import Grid, uniform
from ..groups import O2, SO2
from ..models import resnet
from ..nn import Project

GRIDS = {"lie_resnet_so2_8": uniform(SO2(), 8), "lie_resnet_o2_16": uniform(O2(), 16)}
_USUAL = {"num_classes": 1000, "input_size": (3, 224, 224), "first_conv": "net.stem", "classifier": "fc"}
default_cfgs = generate_default_cfgs({f"{name}.untrained": _USUAL for name in GRIDS})


class LieResNet(nn.Module):
    """`models.resnet` with the methods that timm asks of a model: five stages, the first at half the image's size."""

    net: Any  # a ResNet, whose parts mypy takes for tensors

    def __init__(
        self, grid: Grid, num_classes: int = 1000, in_chans: int = 3, global_pool: str = "avg", drop_rate: float = 0.0,
        widths: Sequence[int] = (8, 12, 16, 24, 32), output_stride: int = 32,
    ) -> None:  # fmt: skip
        super().__init__()
        if output_stride != 2 ** len(widths) or any(a == b for a, b in pairwise(widths)):
            raise ValueError(f"lie_resnet: output_stride = {output_stride}, widths = {widths}: a new width halves")
        self.net = resnet(in_chans, 0, grid, widths=(widths[0], *widths), kernel="local", features=True)
        for i in range(len(widths) - 1):  # what a classifier does not use must not wait for gradients
            self.net.norms[i] = nn.Identity()
        self.project, self.drop_rate = Project("max", grid), drop_rate
        self.num_features = self.head_hidden_size = widths[-1]
        self.feature_info = [
            {"num_chs": width, "reduction": 2 ** (i + 1), "module": f"net.norms.{i}"} for i, width in enumerate(widths)
        ]
        self.reset_classifier(num_classes, global_pool)

    def get_classifier(self) -> nn.Module:
        return self.fc

    def reset_classifier(self, num_classes: int, global_pool: str = "avg") -> None:
        self.num_classes, self.global_pool = num_classes, global_pool
        self.fc = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        self.net.checkpoint = enable

    def group_matcher(self, coarse: bool = False) -> dict[str, str]:
        return {"stem": r"^net\.stem", "blocks": r"^net\.stages\.(\d+)" + r"\.(\d+)" * (not coarse)}

    def forward_intermediates(
        self, x: Tensor, indices: int | list[int] | None = None, *, intermediates_only: bool = False, **_: Any
    ) -> Any:
        maps = [self.project(level) for level in self.net(x)]
        taken = [maps[i] for i in feature_take_indices(len(maps), indices)[0]]
        return taken if intermediates_only else (maps[-1], taken)

    def forward_features(self, x: Tensor) -> Tensor:
        return self.project(self.net(x)[-1])

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        x = F.dropout(x.mean((2, 3)) if self.global_pool else x, self.drop_rate, self.training)
        return x if pre_logits else self.fc(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


def _register(name: str, grid: Grid) -> None:
    def create(pretrained: bool = False, **options: Any) -> nn.Module:
        features = {"out_indices": (0, 1, 2, 3, 4), "feature_cls": "getter"}
        return build_model_with_cfg(LieResNet, name, pretrained, feature_cfg=features, grid=grid, **options)

    create.__name__ = name
    register_model(create)


for _name, _grid in GRIDS.items():
    _register(_name, _grid)
