"""``duplex-bench validate``: blind samples for people, and what their answers say about the judge."""

from pathlib import Path
from typing import Annotated

import typer

from duplex_bench.cli.console import console
from duplex_bench.cli.options import DataOption, ProfileOption

app = typer.Typer(
    no_args_is_help=True,
    help="Check scripts, answers and acknowledgements of the multiparty track by ear: draw a blind sample, fill it in "
    "the page or the CSV, score it.",
)


@app.command()
def draw(
    task: Annotated[str, typer.Argument(help="construction, answers or acknowledgement.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder for sheet, page and audio.")],
    samples: Annotated[int, typer.Option("--samples", "-n", min=1, help="How many to draw, by hash.")] = 100,
    profile: ProfileOption = "demo",
    data: DataOption = Path("data"),
) -> None:
    """Draw a blind sample: OUT/index.html plays it and saves a filled sheet; OUT/sheet.csv can be filled as well."""
    from duplex_bench.stages.validation import draw as drawn
    from duplex_bench.stages.workspace import open_workspace

    counts = drawn(open_workspace(profile, data), task, out, samples).counts
    console.print(
        f"drew {counts['samples']} of {counts['of']} ({task}), blind: open {out / 'index.html'}", highlight=False
    )
    console.print(f"then: duplex-bench validate score {out / 'sheet-filled.csv'}", highlight=False, soft_wrap=True)


@app.command()
def score(
    sheet: Annotated[Path, typer.Argument(help="The filled sheet (CSV).")],
    other: Annotated[Path | None, typer.Option("--other", help="A second person's sheet of the same draw.")] = None,
    profile: ProfileOption = "demo",
    data: DataOption = Path("data"),
) -> None:
    """Score a filled sheet: agreement with the judge, Wilson interval, kappa. The report shows it from then on."""
    from duplex_bench.stages.validation import score as scored
    from duplex_bench.stages.workspace import open_workspace

    result = scored(open_workspace(profile, data), sheet, other)
    for row in result.frame.iter_rows(named=True):
        share = "no answer yet" if row["share"] is None else f"{row['n_agree']} of {row['n_answered']}"
        bounds = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
        kappa = "" if row["kappa"] is None else f", kappa {row['kappa']:.2f}"
        console.print(
            f"{row['task']}, {row['question']} ({row['compared']}): {share}{bounds}{kappa}",
            highlight=False,
            soft_wrap=True,
        )
