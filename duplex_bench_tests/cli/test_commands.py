"""What a newcomer sees: help of every command, and one line with the remedy for every mistake."""

import errno
import os

import pytest
from typer.testing import CliRunner

from duplex_bench.cli import main
from duplex_bench.cli.run import _ui_command

pytestmark = pytest.mark.unit


def name_of(command):
    return command.name or command.callback.__name__.replace("_", "-")


COMMANDS = sorted(name_of(command) for command in main.app.registered_commands)


def test_the_commands_of_the_design_are_there():
    groups = {group.name for group in main.app.registered_groups}
    wanted = {"init", "doctor", "plan", "run", "status", "report", "systems", "score-audio", "ui"}
    assert wanted <= set(COMMANDS) | groups


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_its_options(command):
    found = CliRunner().invoke(main.app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert found.exit_code == 0
    assert "Usage:" in found.stdout
    registered = next(one for one in main.app.registered_commands if name_of(one) == command)
    first = registered.callback.__doc__.split(".")[0].split(":")[0].split()
    assert " ".join(first[:4]) in " ".join(found.stdout.split())


def test_help_without_a_command(called):
    found = CliRunner().invoke(main.app, [], env={"COLUMNS": "200", "TERM": "dumb"})
    for command in COMMANDS:
        assert command in found.stdout
    assert "duplex-bench run --profile demo" in found.stdout


def test_version(called):
    from duplex_bench import __version__

    code, out, _ = called("--version")
    assert (code, out.strip()) == (0, f"duplex-bench {__version__}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--profile", "nowhere.toml"), "no such profile: name one of demo"),
        (("run", "--track", "monologue"), "no track 'monologue': choose multiparty, conversation or all"),
        (("run", "--system", "hal"), "no system 'hal': there are always-speak"),
        (("plan", "--profile", "nowhere.toml"), "no such profile"),
        (("status", "--profile", "nowhere.toml"), "no such profile"),
        (("report", "--profile", "nowhere.toml"), "no such profile"),
    ],
)
def test_a_mistake_is_one_line_with_its_remedy(called, arguments, told):
    code, _, err = called(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert told in err
    assert "Traceback" not in err


def test_a_profile_with_an_unknown_key(called, tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\nspeed = 1\n')
    code, _, err = called("run", "--profile", "mine.toml")
    assert code == 2
    assert err.startswith("error: mine.toml: unknown key speed: known here are")


@pytest.mark.parametrize("arguments", [("run", "--limit", "0"), ("run", "--limit", "many"), ("walk",)])
def test_a_wrong_option_shows_how_to_get_help(called, arguments):
    code, _, err = called(*arguments)
    assert code == 2
    assert "--help" in err or "Invalid value" in err


def test_a_card_that_cannot_be_read_is_told_and_the_rest_goes_on(called, tmp_path):
    folder = tmp_path / "data" / "systems"
    folder.mkdir(parents=True)
    (folder / "bad.toml").write_text('name = "bad"\n')
    code, out, err = called("systems")
    assert code == 0
    assert "never-speak" in out
    assert "skipped" in err
    assert "bad.toml" in err


def test_status_before_anything_was_run(called):
    code, out, _ = called("status")
    assert code == 0
    assert "no items yet: run `duplex-bench run --profile demo`" in " ".join(out.split())


@pytest.mark.parametrize("arguments", [("systems",), ("systems", "check", "never-speak"), ("systems", "new", "mine")])
def test_a_data_folder_that_is_a_file_is_refused(called, tmp_path, arguments):
    (tmp_path / "file").write_text("")
    code, _, err = called(*arguments, "--data", "file")
    assert code == 2
    assert "--data file is a file: name a folder" in err


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_no_machine_has_is_refused(called, port):
    code, _, err = called("systems", "talk", "never-speak", "--port", port)
    assert code == 2
    assert "--port" in err


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EROFS, "name another place"),
        (errno.EACCES, "make it readable"),
        (errno.EADDRINUSE, "another with --port"),
    ],
)
def test_what_the_operating_system_refuses_is_told_with_what_to_do(called, monkeypatch, number, remedy):
    def refused(*_):
        raise OSError(number, os.strerror(number), "there[bold]")

    monkeypatch.setattr("duplex_bench.cli.status.list_systems", refused)
    code, _, err = called("systems")
    assert code == 2
    assert "there[bold]" in err
    assert remedy in err


def test_the_command_for_the_ui_can_be_pasted(tmp_path):
    assert _ui_command(tmp_path, "my data ü") == "duplex-bench ui --data 'my data ü'"
    assert _ui_command(tmp_path, "data") == "make ui"
    assert _ui_command(tmp_path, "data", "my.toml", 2) == "duplex-bench ui --profile my.toml --limit 2"


def test_a_plan_needs_no_key_and_says_what_a_run_will_need(called, monkeypatch):
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    code, out, err = called("plan", "--system", "grok-voice", "--system", "moshi")
    assert code == 0
    assert "to run grok-voice, set XAI_API_KEY" in err
    assert "systems setup moshi" in err
    assert "cost of grok-voice: about " in out
    assert "by the clock: " in out
    code, _, err = called("run", "--system", "grok-voice")
    assert code == 2
    assert "nothing to run" in err
