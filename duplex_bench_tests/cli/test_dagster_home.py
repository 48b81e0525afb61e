from pathlib import Path

import dagster as dg
import pytest

from duplex_bench.cli import local_run
from duplex_bench.cli.dagster_home import dagster_home
from duplex_bench.cli.run import initialise

pytestmark = pytest.mark.dagster


def runs(root: Path, data: Path) -> int:
    with local_run.instance_of(root, data) as instance:
        return instance.get_runs_count()


def test_each_data_folder_has_runs_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    initialise(tmp_path, Path("data"))
    initialise(tmp_path, Path("elsewhere"))
    with local_run.instance_of(tmp_path, Path("elsewhere")) as instance:
        instance.create_run_for_job(job_def=dg.GraphDefinition("nothing").to_job())
    assert (runs(tmp_path, Path("data")), runs(tmp_path, Path("elsewhere"))) == (0, 1)
    assert (tmp_path / "elsewhere" / "dagster" / "dagster.yaml").is_file()


def test_the_checkouts_own_folder_uses_its_settings_however_it_is_written(tmp_path):
    (tmp_path / "dagster.yaml").write_text("storage: {sqlite: {base_dir: data/dagster}}")
    assert dagster_home(tmp_path, Path("data")) == tmp_path
    assert dagster_home(tmp_path, tmp_path / "other" / ".." / "data") == tmp_path


def test_changed_settings_reach_the_copy(tmp_path):
    settings = tmp_path / "dagster.yaml"
    settings.write_text("storage: {sqlite: {base_dir: data/dagster}}")
    home = dagster_home(tmp_path, Path("mine"))
    settings.write_text("storage: {sqlite: {base_dir: data/dagster}}\ntelemetry: {enabled: false}")
    assert dagster_home(tmp_path, Path("mine")) == home
    assert "telemetry" in (home / "dagster.yaml").read_text()


def test_runs_on_a_server_are_shared(tmp_path):
    (tmp_path / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: URL}}}")
    assert dagster_home(tmp_path, Path("mine")) == tmp_path


def test_a_folder_without_settings_is_told_how_to_get_them(tmp_path):
    with pytest.raises(ValueError, match="duplex-bench init"):
        dagster_home(tmp_path, tmp_path / "mine")


def test_a_place_without_settings_has_those_of_dagster_home(tmp_path, monkeypatch):
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    (home / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: URL}}}")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert dagster_home(here, Path("data")) == home
    assert dagster_home(here, tmp_path / "mine") == home
    # A checkout's own come first: a shell that names a home is no reason to run elsewhere.
    (here / "dagster.yaml").write_text("storage: {sqlite: {base_dir: data/dagster}}")
    assert dagster_home(here, Path("data")) == here


def test_a_run_database_without_space_ends_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    initialise(tmp_path, Path("data"))

    def filled():
        with local_run.instance_of(tmp_path) as instance, instance.run_storage.connect() as connection:
            # SQLite's own limit of pages: what a full disk answers.
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
            connection.exec_driver_sql("CREATE TABLE one (text)")
            for _ in range(99):
                connection.exec_driver_sql("INSERT INTO one VALUES (randomblob(100000))")

    with pytest.raises(local_run.RunDatabaseError, match="free space"):
        filled()
