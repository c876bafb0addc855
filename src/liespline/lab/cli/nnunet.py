"""`liespline nnunet`: our U-Net in nnU-Net's plans."""

from typing import Annotated

import typer

from ..settings import ConfigError

nnunet_app = typer.Typer(no_args_is_help=True, help="Our U-Net in nnU-Net v2, trained by nnU-Net itself.")


@nnunet_app.command()
def plans(
    dataset: Annotated[int, typer.Argument(metavar="DATASET", help="nnU-Net's number of it, such as 4.")],
    group: Annotated[
        str, typer.Option(help="so3, o3, so2, o2 or none; so2 and o2 of volumes: about their first axis.")
    ],
    elements: Annotated[
        int | None, typer.Option(help="Elements of the group; half of o2 and o3 are reflections.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="Kernel on the group: dense, or local with fewer parameters.")] = "dense",
    base: Annotated[str, typer.Option("--from", help="nnU-Net's plans to start from.")] = "nnUNetPlans",
    name: Annotated[str | None, typer.Option(help="Name of the new plans; default liespline and the group.")] = None,
) -> None:
    """Write plans that name our U-Net beside nnU-Net's own: `nnUNetv2_train … -p NAME` trains it.

    Needs what nnUNetv2_plan_and_preprocess makes, and nothing is preprocessed again.
    """
    from ...integrations.nnunet import write_plans

    try:
        found = write_plans(dataset, group, elements, kernel=kernel, base=base, name=name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    typer.echo(found.file)
    for title, words in found.configurations.items():
        typer.echo(f"{title}: {words}")
    for title, trainer in found.trainers.items():
        option = f" -tr {trainer}" if trainer else ""
        typer.echo(f"train with: nnUNetv2_train {dataset} {title} 0 -p {found.file.stem}{option}")
