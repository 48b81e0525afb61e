"""The ``duplex-bench`` command. Heavy libraries load inside the commands that need them, so that help is quick."""

import errno
import os
from pathlib import Path
from typing import Annotated

import typer

from duplex_bench import __version__
from duplex_bench.cli import systems, validate
from duplex_bench.cli.cluster import commands as cluster
from duplex_bench.cli.options import DataOption, LimitedOption, LimitOption, ProfileOption
from duplex_bench.cli.root import root as _root

app = typer.Typer(
    name="duplex-bench",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Measure how talking machines behave in conversation: when they speak, keep silent and stop, and what\n"
    "they say.\n\n"
    "A first run on a laptop, with no key and no GPU: duplex-bench run --profile demo",
)

TrackOption = Annotated[
    str, typer.Option("--track", "-t", help="multiparty, conversation, or all: which benchmark to run.")
]
SystemOption = Annotated[
    list[str] | None, typer.Option("--system", "-s", help="A system card by name; repeat for several. Default: all.")
]
_PLACE_REMEDY = "make it readable and writable, or name another place (--data for run outputs)"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"duplex-bench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if os.environ.get("DUPLEX_BENCH_LOG"):
        from duplex_bench.stages.telemetry import logs

        logs.install()


@app.command()
def init(
    data: DataOption = Path("data"),
    cluster_files: Annotated[
        bool, typer.Option("--cluster", help="For Postgres, an object store and Celery workers (docs/cluster.md).")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="With --cluster: runs at a time.")] = 2,
) -> None:
    """Prepare this folder: write dagster.yaml and workspace.yaml if missing, and open the run database once."""
    if cluster_files:
        from duplex_bench.cli.cluster.control import initialise_cluster

        initialise_cluster(Path.cwd(), workers)
        return
    from duplex_bench.cli.run import initialise

    initialise(Path.cwd(), data)


@app.command()
def doctor(
    profile: ProfileOption = "demo",
    live: Annotated[
        str | None, typer.Option("--live", help="Also ask this system one spoken question, for money if it is hosted.")
    ] = None,
    data: DataOption = Path("data"),
) -> None:
    """Check everything a run needs (models by hash, disk, cards, profile) and say what to do about what is missing."""
    from duplex_bench.cli.doctor import diagnose
    from duplex_bench.cli.live import try_live

    ready = diagnose(_root(), data, profile)
    answered = live is None or try_live(_root() / data, profile, live)
    raise typer.Exit(0 if ready and answered else 1)


@app.command()
def plan(
    profile: ProfileOption = "demo",
    track: TrackOption = "all",
    system: SystemOption = None,
    limit: LimitOption = None,
    data: DataOption = Path("data"),
) -> None:
    """Say what a run would do before it does it: items, audio minutes, what is cached, time, cost, power."""
    from duplex_bench.cli.plan import show_plan

    show_plan(_root(), data, profile, track, system or [], limit)


@app.command()
def run(
    profile: ProfileOption = "demo",
    track: TrackOption = "all",
    system: SystemOption = None,
    limit: LimitOption = None,
    again: Annotated[bool, typer.Option("--again", help="Also run parts that nothing has changed for.")] = False,
    only: Annotated[
        str, typer.Option("--only", help="Of systems run before: failed (items that failed or were lost) or stale.")
    ] = "all",
    data: DataOption = Path("data"),
) -> None:
    """Run the benchmark: everything from scripts and recordings to the report. Finished work is never done twice."""
    from duplex_bench.cli.run import run_benchmark

    raise typer.Exit(run_benchmark(_root(), data, profile, track, system or [], limit, again, only))


@app.command()
def status(profile: ProfileOption = "demo", limit: LimitedOption = None, data: DataOption = Path("data")) -> None:
    """Say what has been run, what is out of date, and what failed, per system."""
    from duplex_bench.cli.status import show_status

    show_status(_root(), data, profile, limit)


@app.command()
def report(
    profile: ProfileOption = "demo",
    data: DataOption = Path("data"),
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the default browser.")] = False,
    limit: LimitedOption = None,
    public: Annotated[
        bool, typer.Option("--public", help="Also the build to publish: without what people said and systems heard.")
    ] = False,
) -> None:
    """Build the report again from stored results and print where it is."""
    from duplex_bench.cli.run import build_report

    raise typer.Exit(build_report(_root(), data, profile, open_it, limit, public))


@app.command()
def regenerate(
    profile: ProfileOption = "demo",
    system: SystemOption = None,
    data: DataOption = Path("data"),
) -> None:
    """After a label review: make labels, points and items anew, and say which stimuli changed and what is due."""
    from duplex_bench.cli.regenerate import regenerate as make_anew

    raise typer.Exit(make_anew(_root(), data, profile, system or []))


@app.command()
def serve(
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="A vendor's (openai-realtime, xai-realtime, gemini-live) or a model's (flm-audio, freeze-omni, "
            "minicpm-o-realtime, minicpm-o-demo, vllm-omni-duplex ...).",
        ),
    ] = "openai-realtime",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address; another than loopback needs --key.")] = "127.0.0.1",
    voice: Annotated[
        str, typer.Option(help="Who answers: cascade (listens and speaks, embedded models) or tone (no model).")
    ] = "cascade",
    key: Annotated[str | None, typer.Option(envvar="DUPLEX_BENCH_SERVE_KEY", help="Key a client must show.")] = None,
    think_s: Annotated[float, typer.Option(help="Seconds from a turn's end to the first audio.")] = 0.3,
    speed: Annotated[float, typer.Option(help="Times realtime at which audio is sent.")] = 4.0,
    data: DataOption = Path("data"),
) -> None:
    """Serve a vendor's or a model's realtime protocol on this machine, without a key: it truly listens and speaks."""
    from duplex_bench.cli.serve import serve_protocol

    raise typer.Exit(serve_protocol(protocol, port, host, voice, key, think_s, speed, _root() / data))


@app.command(name="score-audio")
def score_audio(
    user: Annotated[
        Path, typer.Argument(help="The user's channel, or one two-channel file (left: user, right: system).")
    ],
    system: Annotated[Path | None, typer.Argument(help="The system's channel, if it is a file of its own.")] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Word times: RTTM, TextGrid or JSON. Default: our own ASR.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the page and tables.")] = Path("score-audio"),
    data: DataOption = Path("data"),
) -> None:
    """Score a recording you already have: pauses, turn ends and interruptions, with a page to listen to. No adapter."""
    from duplex_bench.cli.recordings import score_recording

    raise typer.Exit(score_recording(user, system, labels, out, _root() / data))


@app.command()
def review(
    profile: ProfileOption = "demo",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port.")] = 8780,
    host: Annotated[
        str, typer.Option(help="Address; another than loopback needs tokens (docs/review.md).")
    ] = "127.0.0.1",
    admin: Annotated[
        list[str] | None, typer.Option("--admin", help="Who approves and returns sessions; repeat for several.")
    ] = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="Annotators see neither the engine's labels nor one another's.")
    ] = False,
    database: Annotated[
        str | None,
        typer.Option("--database", help="Database URL (Postgres for several machines). Default: data/review.sqlite."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--host-name", help="A name by which browsers reach it; repeat for several.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the agreement tables as CSV into this folder; serve nothing.")
    ] = None,
    data: DataOption = Path("data"),
) -> None:
    """Correct labels by ear and eye: two waveforms, flags to look at, window check, listener task."""
    from duplex_bench.cli.review import export_review, serve_review

    if export is not None:
        raise typer.Exit(export_review(_root() / data, profile, database, export))
    raise typer.Exit(serve_review(_root() / data, profile, host, port, admin or ["admin"], blind, database, name or []))


@app.command()
def trace(
    measurement_id: Annotated[str, typer.Argument(help="The score's id, or the beginning of it.")],
    profile: ProfileOption = "demo",
    system: Annotated[
        str | None, typer.Option("--system", "-s", help="Whose score, where two cards share a rollout.")
    ] = None,
    rescored: Annotated[
        str | None, typer.Option("--rescored", help="Look in the tables that rescore wrote under this name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All of it, as JSON.")] = False,
    limit: LimitedOption = None,
    data: DataOption = Path("data"),
) -> None:
    """Walk a score back: metric, window, item, rollout, audio, words, verdict, prompt, card, code, Dagster asset."""
    from duplex_bench.cli.trace import show_trace

    show_trace(_root() / data, profile, measurement_id, system, rescored, as_json, limit)


@app.command()
def rescore(
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as gate.threshold=0.02; several may be given.")
    ] = None,
    profile: ProfileOption = "demo",
    other: Annotated[
        str | None, typer.Option("--with", help="A TOML file whose settings replace the run's; it may be partial.")
    ] = None,
    track: TrackOption = "all",
    name: Annotated[str, typer.Option("--name", help="Name of the result; default: that of --with or a digest.")] = "",
    limit: LimitOption = None,
    every: Annotated[bool, typer.Option("--all", help="Print every estimate that moved.")] = False,
    data: DataOption = Path("data"),
) -> None:
    """Score stored rollouts under another gate, detector, recogniser, judge or metric setting; runs no system."""
    from duplex_bench.cli.rescore import show_rescore

    show_rescore(_root() / data, profile, track, settings or [], other, name, limit, every)


@app.command()
def compare(
    a: Annotated[
        str,
        typer.Argument(help="A system of the run; or another run by path (data folder, bundle, report; ::SYSTEM)."),
    ],
    b: Annotated[str, typer.Argument(help="Another of the same kind; differences are the first minus this one.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="A metric by id; repeat for several. Default: headline.")
    ] = None,
    system: Annotated[
        list[str] | None, typer.Option("--system", "-s", help="Of two runs: which systems. Default: all in both.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", help="Whose scores: of the run (default demo), or of data folders named."),
    ] = None,
    examples: Annotated[int, typer.Option("--examples", min=0, help="Windows shown by metric and condition.")] = 3,
    quote: Annotated[bool, typer.Option("--quote", help="Of two runs: print one line to quote per metric.")] = False,
    limit: LimitedOption = None,
    data: DataOption = Path("data"),
) -> None:
    """Compare two systems, or two runs, on the windows they share: difference, interval, tests, what else differs."""
    from duplex_bench.cli.compare import show_comparison

    show_comparison(_root() / data, profile, a, b, metric or [], system or [], examples, limit, quote)


@app.command()
def gate(
    baseline: Annotated[
        Path, typer.Option("--baseline", "-b", help="What to hold the run against: data folder, bundle or report.")
    ],
    run_path: Annotated[
        Path | None, typer.Option("--run", help="The run to check, by path. Default: that in --data.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="Whose scores are checked. Default: demo, or all of --run.")
    ] = None,
    baseline_profile: Annotated[
        str | None, typer.Option("--baseline-profile", help="Whose scores, where the baseline holds several profiles'.")
    ] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="TOML file of margins and policies.")] = None,
    margin: Annotated[
        list[str] | None, typer.Option("--margin", help="metric=number in the metric's unit; repeat for several.")
    ] = None,
    test: Annotated[
        str | None, typer.Option("--test", help="non_inferiority (default), equivalence or no_regression.")
    ] = None,
    system: Annotated[
        list[str] | None, typer.Option("--system", "-s", help="A system of the baseline; repeat. Default: all.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    summary: Annotated[
        Path | None, typer.Option("--summary", help="Append Markdown here, as to $GITHUB_STEP_SUMMARY.")
    ] = None,
    limit: LimitedOption = None,
    data: DataOption = Path("data"),
) -> None:
    """Check a run against a baseline by interval; exits with 1 and the reasons where it does not hold (docs/ci.md)."""
    from duplex_bench.cli.gate import run_gate
    from duplex_bench.stages.workspace import open_workspace

    name = profile if run_path else open_workspace(profile or "demo", _root() / data, limit).profile.name
    checked = run_path or _root() / data
    options = (rules, margin or [], test, system or [], junit, summary)
    raise typer.Exit(run_gate(checked, name, baseline, baseline_profile, *options))


@app.command()
def release(
    profile: ProfileOption = "demo",
    check: Annotated[
        Path | None, typer.Option("--check", help="Check a bundle (folder or .tar.gz) instead of making one.")
    ] = None,
    rescore: Annotated[
        Path | None, typer.Option("--rescore", help="Make the scores of a bundle anew, from it alone, and compare.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --rescore: the result as JSON.")] = False,
    limit: LimitedOption = None,
    data: DataOption = Path("data"),
) -> None:
    """Make the public bundle of a run, check one, or score one again from itself; no corpus audio (docs/release.md)."""
    from duplex_bench.cli import release as bundle

    if check is not None and rescore is not None:
        raise ValueError("--check and --rescore are two commands: give one")
    if check is not None:
        raise typer.Exit(bundle.show_check(check))
    if rescore is not None:
        raise typer.Exit(bundle.show_rescore(rescore, as_json))
    raise typer.Exit(bundle.make_release(_root(), data, profile, limit))


app.add_typer(systems.app, name="systems")
app.add_typer(validate.app, name="validate")
app.add_typer(cluster.app, name="cluster")


@app.command(name="corpus-files")
def corpus_files(
    file_list: Annotated[Path, typer.Argument(help="filelist.csv of the Seamless Interaction release.")],
    selection: Annotated[
        Path | None, typer.Option("--selection", help="Interactions wanted, one a line. Default: all.")
    ] = None,
    bucket: Annotated[bool, typer.Option("--bucket", help="Object keys of the bucket instead of archives.")] = False,
    label: Annotated[str, typer.Option(help="naturalistic or improvised.")] = "naturalistic",
) -> None:
    """Print what to download for the interactions you want: archives, or single objects. Downloads nothing."""
    from duplex_bench.conversation import seamless_archives as archives

    keys = archives.read_selection(selection) if selection else None
    listed = archives.read_file_list(file_list, label)
    needed = archives.needed_s3_keys(listed, keys) if bucket else archives.needed_archives(listed, keys)
    for path in needed:
        typer.echo(path)


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(help="Where to: an empty folder, or an earlier backup, which is renewed.")],
    data: DataOption = Path("data"),
) -> None:
    """Copy store, run database, review database, cards and corpora into a folder, with hashes; runs may go on."""
    from duplex_bench.cli.backup import back_up

    raise typer.Exit(back_up(_root() / data, folder))


@app.command()
def restore(
    folder: Annotated[Path, typer.Argument(help="The backup.")],
    check: Annotated[bool, typer.Option("--check", help="Only say whether every file is what was written.")] = False,
    data: DataOption = Path("data"),
) -> None:
    """Put a backup into an empty data folder (and store, and database, where the environment names them)."""
    from duplex_bench.cli.backup import put_back

    raise typer.Exit(put_back(_root() / data, folder, check))


@app.command()
def upgrade(
    check: Annotated[bool, typer.Option("--check", help="Only say which stored tables are to be made again.")] = False,
    data: DataOption = Path("data"),
) -> None:
    """After an update: say which stored tables this version cannot read, and migrate the run database."""
    from duplex_bench.cli.backup import upgrade as bring_up_to_date

    raise typer.Exit(bring_up_to_date(_root(), _root() / data, check))


@app.command()
def health(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="Serve the page, health.json and metrics here. Default: look once."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address; another than loopback needs DUPLEX_BENCH_HEALTH_TOKEN.")
    ] = "127.0.0.1",
    data: DataOption = Path("data"),
) -> None:
    """Say whether all that runs need is there: code location, daemons, database, store, queue, disk, stuck runs."""
    from duplex_bench.cli.health import show_health

    raise typer.Exit(show_health(_root(), _root() / data, host, port))


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1.")] = 3000,
    profile: ProfileOption = "demo",
    data: DataOption = Path("data"),
    limit: LimitOption = None,
) -> None:
    """Open the Dagster UI on 127.0.0.1 with the runs of a data folder."""
    from duplex_bench.cli.ui import serve_ui

    serve_ui(_root(), data, port, profile, limit)


def _as_told(error: Exception) -> str:
    """The error, with what to do where the operating system only says what it refused."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    remedies = {
        errno.EADDRINUSE: "choose another with --port",
        errno.EACCES: _PLACE_REMEDY,
        errno.EPERM: _PLACE_REMEDY,
        errno.EROFS: _PLACE_REMEDY,
    }
    remedy = remedies.get(error.errno)
    return f"{error}: {remedy}" if remedy else str(error)


def main() -> None:
    """Entry point: bad input ends with one line that names the remedy, not with a stack."""
    from duplex_bench.cli.console import tell_error
    from duplex_bench.storage.secrets import redacted

    try:
        app()
    except (ValueError, OSError) as error:
        tell_error(redacted(_as_told(error)))
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()
