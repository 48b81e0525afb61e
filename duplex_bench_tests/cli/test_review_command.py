import subprocess
import sys

import pytest

from duplex_bench.cli.review import serve_review

pytestmark = pytest.mark.process


def test_another_host_without_tokens_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("DUPLEX_BENCH_REVIEW_TOKEN", raising=False)
    with pytest.raises(ValueError, match="lets others in"):
        serve_review(tmp_path, "demo", "0.0.0.0", 0, ["Ada"], False, None, [])


def test_the_command_says_what_to_run_first(tmp_path):
    command = [sys.executable, "-m", "duplex_bench.cli.main", "review", "--data", str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 2
    assert "--track conversation" in " ".join(done.stderr.split())
