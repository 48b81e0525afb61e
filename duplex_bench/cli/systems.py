"""``duplex-bench systems``: what can be run here, and the commands for one's own."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from duplex_bench.cli.console import console, error_console, tell_skipped
from duplex_bench.cli.options import DataOption

app = typer.Typer(
    invoke_without_command=True,
    help="Systems: list those that can be run here, check one, add one's own, talk to one.",
)

NameArgument = Annotated[str, typer.Argument(help="The system, by its card's name.")]
_COLOURS = {"kept": "green", "broken": "red", "not_applicable": "dim"}


@app.callback()
def listed(context: typer.Context, data: DataOption = Path("data")) -> None:
    """List the systems that can be run here, and cards that could not be read, with the reason."""
    if context.invoked_subcommand is None:
        from duplex_bench.cli.root import data_folder
        from duplex_bench.cli.status import list_systems

        list_systems(data_folder(data))


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="The system, by its card's name.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every card that can be run here, without paying.")] = False,
    loopback: Annotated[
        bool,
        typer.Option(
            "--loopback",
            help="With --all: cards whose server is not here too, against our server of its protocol (minutes).",
        ),
    ] = False,
    paid: Annotated[
        bool, typer.Option("--paid", help="Agree that a hosted system is opened about twenty times, for minutes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    data: DataOption = Path("data"),
) -> None:
    """Try every rule of the contract on a system; 0 if it keeps those that must be kept. The report shows the level."""
    from duplex_bench.cli.root import data_folder

    if every == bool(name):
        raise ValueError("systems check: name one system, or give --all")
    if every and paid:
        raise ValueError("systems check --all never pays: check hosted systems one by one with --paid")
    if loopback and not every:
        raise ValueError("systems check: --loopback belongs to --all")
    folder = data_folder(data)
    raise typer.Exit(_check_every(folder, loopback, as_json) if every else _check_one(folder, name, paid, as_json))


def _check_every(folder: Path, loopback: bool, as_json: bool) -> int:
    import json

    from duplex_bench.cli.check_all import PASSED_OVER, Checked, check_all
    from duplex_bench.stages.cards import readable_cards
    from duplex_bench.storage.places import open_store

    def say(one: Checked) -> None:
        if one.level != PASSED_OVER:
            error_console.print(f"[dim]{one.system}: {one.level}, {one.took_s:.0f} s[/]", highlight=False)

    cards, errors = readable_cards(folder / "systems")
    found = check_all(cards, folder, open_store(folder), loopback=loopback, say=say)
    if as_json:
        typer.echo(json.dumps([one.as_data() for one in found], indent=1))
    else:
        table = Table(Column("system", no_wrap=True), "held against", "level", "broken", "not applicable", "said")
        for one in found:
            colour = "red" if one.failed else "dim" if one.level == PASSED_OVER else "green"
            level = f"[{colour}]{one.level}[/]"
            cells = [", ".join(one.broken), ", ".join(one.not_applicable), "\n".join(one.told)]
            table.add_row(one.system, one.against, level, *map(escape, cells))
        console.print(table)
    tell_skipped(errors)
    return 1 if errors or any(one.failed for one in found) else 0


def _check_one(folder: Path, name: str, paid: bool, as_json: bool) -> int:
    from duplex_bench.stages.cards import card_named, readable_cards
    from duplex_bench.stages.conformance import examine_card, level_text
    from duplex_bench.storage.places import open_store
    from duplex_bench.storage.serial import to_json
    from duplex_bench.systems.card import missing_env

    card = card_named(folder / "systems", name)
    # A file of that name whose card was passed over is not what is checked: another card has the name.
    tell_skipped(error for error in readable_cards(folder / "systems")[1] if Path(error.file).stem == name)
    missing = missing_env(card, os.environ)
    if missing:
        raise ValueError(f"system {name} cannot run here: set {' and '.join(missing)} in the environment")
    if card.provider and not paid:
        raise ValueError(f"checking {name} opens about twenty paid sessions at {card.provider}: give --paid to agree")
    found = examine_card(card, folder, open_store(folder))
    if as_json:
        typer.echo(to_json(found))
    else:
        table = Table(Column("rule", no_wrap=True), "level", "result", "what was seen")
        first: dict[tuple[str, ...], str] = {}
        for result in found.examination.results:
            colour = _COLOURS[result.status]
            shown = f"[{colour}]{result.status.replace('_', ' ')}[/]"
            told = "\n".join(result.messages)
            # One fault of a system often breaks many rules.
            rule = first.setdefault(result.messages, result.rule) if result.status == "broken" else result.rule
            table.add_row(result.rule, result.level, shown, escape(told) if rule == result.rule else f"as {rule!r}")
        console.print(table)
        console.print(_verdict(name, level_text(found)), highlight=False, soft_wrap=True)
    return 0 if found.examination.level else 1


def _verdict(name: str, level: str) -> str:
    if level == "none":
        return f"[red]{name} breaks the contract:[/] repair what must be kept, its scores would mean nothing"
    below = {"must": "no rule of must is broken", "should": "no rule of must and should is broken"}
    told = below.get(level, "no rule is broken, which is the highest")
    return (
        f"[green]{name} reaches the level {level}[/]: {told}. The report shows it until the card's execution changes.\n"
        f"next: duplex-bench run --system {name} --limit 2"
    )


@app.command()
def new(
    name: NameArgument,
    python: Annotated[
        str | None,
        typer.Option("--python", help="The Python that has your model's packages, and numpy. Default: this one."),
    ] = None,
    data: DataOption = Path("data"),
) -> None:
    """Write a card and a class to start from; they pass the suite as they are."""
    from duplex_bench.cli.new_system import write_new_system
    from duplex_bench.cli.root import data_folder
    from duplex_bench.stages.cards import readable_cards

    folder = data_folder(data) / "systems"
    cards, errors = readable_cards(folder)
    card, code = write_new_system(folder, name, set(cards), python)
    for path in (card, code):
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    console.print(f"next: duplex-bench systems check {name}", highlight=False, soft_wrap=True)
    tell_skipped(errors)


@app.command()
def setup(
    name: NameArgument,
    python: Annotated[
        str | None, typer.Option("--python", help="The Python it is made with, 3.10 or newer. Default: this one.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Make it anew although it is there.")] = False,
    data: DataOption = Path("data"),
) -> None:
    """Make the environment of a system from its card's lock; nothing of it touches this environment."""
    import sys

    from duplex_bench.cli.root import data_folder
    from duplex_bench.stages.cards import card_named
    from duplex_bench.systems.virtual_environments import set_up

    def say(step: str) -> None:
        console.print(f"[dim]{step}[/]", highlight=False, soft_wrap=True)

    folder = data_folder(data)
    made = set_up(
        card_named(folder / "systems", name), folder / "cache", python or sys.executable, again=again, say=say
    )
    told = "ready" if made.is_new else "was there already"
    console.print(f"{name}: {told}: {made.interpreter}", highlight=False, soft_wrap=True)
    console.print(f"next: duplex-bench systems check {name}", highlight=False)


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(help="The card to vary: of the embedded cascade or a hosted system.")],
    silences: Annotated[
        str, typer.Option("--silences", help="Milliseconds of silence that end a turn, with commas between.")
    ] = "100,200,300,500,700,1000,1500,2000",
    data: DataOption = Path("data"),
) -> None:
    """Write cards that differ in their endpointer: each silence, and semantic detection at each eagerness."""
    from duplex_bench.cli.new_system import write_sweep
    from duplex_bench.cli.root import data_folder

    written = write_sweep(data_folder(data) / "systems", name, silences)
    console.print(f"wrote {len(written)} cards into {data_folder(data) / 'systems'}", highlight=False, soft_wrap=True)
    chosen = " ".join(f"--system {card.name}" for card in written)
    console.print(f"next: duplex-bench run --track conversation {chosen}", highlight=False, soft_wrap=True)
    if written[0].driver == "realtime":
        console.print(
            'set rollout.protocols.turn_end_trigger = "endpointer" in the profile, or turn ends are asked for and the '
            "endpointer decides pauses alone",
            highlight=False,
            soft_wrap=True,
        )


@app.command()
def talk(
    name: NameArgument,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 for any that is free.")] = 8790,
    profile: Annotated[
        str, typer.Option("--profile", "-p", help="The run whose items can be played to it while you listen in.")
    ] = "demo",
    data: DataOption = Path("data"),
) -> None:
    """Talk to a system from the browser's microphone, or play it an item and listen in. Loopback only."""
    from duplex_bench.cli.root import data_folder
    from duplex_bench.cli.talk import serve_talk

    raise typer.Exit(serve_talk(data_folder(data), name, port, profile))
