"""Ready networks in a folder or on the Hugging Face Hub: `config.json`, `model.safetensors` and a model card."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from torch import nn

from ..nn import FrameBias, InFrame, Lift
from .recipe import from_json, to_json

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
VERSION: str = importlib.import_module(__name__.partition(".")[0]).__version__  # also where nothing is installed
P = ParamSpec("P")
N = TypeVar("N", bound="Pretrained")
_MAKERS: dict[str, Callable[..., Any]] = {}
_CARD = """---
library_name: liespline
{front}tags: [equivariance, lie-groups, liespline]
---

# {name}

{parameters:,} parameters, saved by liespline {version} (`pip install 'liespline[lab,hub]'`).

```python
import liespline

net = {usage}
```

- **Symmetry**: {grid!r}. Where an element of the group moves an image, classes stay and maps move along, up to
  interpolation{broken}.
- **Data**: {data}
- **Training**: {training}
- **Licence**: {license}

{scores}"""


class Saved(nn.Module):
    """A network that can be saved as a folder of three files, and from there on the Hub."""

    def save_pretrained(
        self, folder: str | Path, *, scores: Mapping[str, Any] | None = None, data: str = "not said",
        license: str = "", name: str = "",
    ) -> Path:  # fmt: skip
        """Write config.json, model.safetensors and README.md, a card that says scores, data, licence and symmetry.

        `name` is what the card calls it, by default the folder's own.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._write(folder)
        usage, training, known = self._about(name or str(folder))
        rows = [f"| {key} | {value} |\n" for key, value in {**known, **(scores or {})}.items()]
        text = _CARD.format(
            name=name or folder.name, version=VERSION, usage=usage, data=data, training=training,
            front=f"license: {license}\n" if license else "", license=license or "not said",
            parameters=sum(parameter.numel() for parameter in self.parameters()),
            grid=next(layer.out_grid for layer in self.modules() if isinstance(layer, Lift)),
            broken=", but for learned biases" if any(isinstance(one, FrameBias) for one in self.modules()) else "",
            scores="".join(["| score | value |\n| --- | --- |\n", *rows] if rows else []),
        )  # fmt: skip
        (folder / CARD).write_text(text, encoding="utf-8")
        return folder

    def push_to_hub(self, repo_id: str, *, private: bool = False, **card: Any) -> str:
        """Save it as OWNER/NAME on the Hugging Face Hub and return its address; `card` is as for `save_pretrained`."""
        hub = needed("huggingface_hub")
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder, **{"name": repo_id, **card})
            address = hub.create_repo(repo_id, private=private, exist_ok=True)
            hub.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=f"liespline {VERSION}")
        return str(address)

    def _write(self, folder: Path) -> None:
        """Write configuration and parameters."""
        raise NotImplementedError

    def _about(self, name: str) -> tuple[str, str, dict[str, str]]:
        """What the card says of it under this name: how to load it, how it was trained, its scores."""
        raise NotImplementedError


class Pretrained(Saved):
    """A ready network, which knows what it was made of."""

    recipe: tuple[str, dict[str, Any]]
    """The name of its function and all of its arguments."""

    def _write(self, folder: Path) -> None:
        name, arguments = self.recipe
        try:
            plain = {key: to_json(value) for key, value in arguments.items()}
            config = {"liespline": VERSION, "model": name, "arguments": plain}
            made(config).load_state_dict(self.state_dict())  # what nothing could load is not saved
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"save_pretrained: models.{name} of its arguments cannot load it: {error}") from error
        tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in self.state_dict().items()}
        needed("safetensors.torch").save_file(tensors, folder / WEIGHTS, {"format": "pt"})
        (folder / CONFIG).write_text(json.dumps(config) + "\n", encoding="utf-8")

    def _about(self, name: str) -> tuple[str, str, dict[str, str]]:
        return f"liespline.models.from_pretrained({name!r})", "not said", {}


class Chain(Pretrained, nn.Sequential):
    """A ready network whose layers follow each other."""


class Framed(Pretrained, InFrame):
    """A ready network with biases on the group."""


def ready(make: Callable[P, N]) -> Callable[P, N]:
    """Let what a function makes remember the function and its arguments, the defaults of today included."""

    @functools.wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> N:
        network = make(*args, **kwargs)
        given = inspect.signature(make).bind(*args, **kwargs)
        given.apply_defaults()
        network.recipe = make.__name__, dict(given.arguments)
        return network

    _MAKERS[make.__name__] = call
    return call


def made(config: Mapping[str, Any]) -> Pretrained:
    """The network of a configuration, not trained."""
    if (make := _MAKERS.get(name := config["model"])) is None:
        raise ValueError(f"model {name!r}: this liespline has {', '.join(_MAKERS)}")
    network: Pretrained = make(**{key: from_json(value) for key, value in config["arguments"].items()})
    return network


def from_pretrained(where: str | Path) -> Pretrained:
    """Return the ready network of a folder of `save_pretrained`, or of OWNER/NAME on the Hub, in eval mode.

    Raises ValueError where the parameters are not those of the network that config.json describes: four orientations
    are not loaded into eight.
    """
    folder = folder_of(where)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if "run" in config:
            raise ValueError(f"holds a network that the command trained: say liespline.load({str(where)!r})")
        tensors = needed("safetensors.torch").load_file(folder / WEIGHTS)
        network = made(config)
        # In the dtype that it was saved in; the splines on H that travel beside are in float64 in any case.
        network.to(next(tensors[name].dtype for name, _ in network.named_parameters()))
        network.load_state_dict(tensors)
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise ValueError(f"{where}: is no folder of save_pretrained that can be loaded: {error}") from error
    return network.eval()


def folder_of(where: str | Path) -> Path:
    """A folder as it is; what can only be a name on the Hub, OWNER/NAME, is fetched from there."""
    path = Path(where)
    if path.exists() or path.parent.exists() or not HUB_NAME.fullmatch(str(where)):
        return path
    return Path(needed("huggingface_hub").snapshot_download(str(where), allow_patterns=[CONFIG, WEIGHTS, CARD]))


def needed(module: str) -> Any:
    """A package of the extra `hub`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{module.partition('.')[0]} is not here: pip install 'liespline[hub]'") from error
