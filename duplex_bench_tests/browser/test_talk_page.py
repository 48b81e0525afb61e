"""The page to talk from, with a microphone that plays a file: what is said is answered."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from duplex_bench.cli.main import app

pytestmark = pytest.mark.browser

RATE = 24_000


@pytest.fixture
def address(tmp_path):
    assert CliRunner().invoke(app, ["systems", "new", "parrot", "--data", str(tmp_path)]).exit_code == 0
    command = [sys.executable, "-m", "duplex_bench.cli.main", "systems", "talk", "parrot", "--port", "0"]
    process = subprocess.Popen([*command, "--data", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline()).group(0)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (0, 130)


def test_what_is_said_is_answered(address, tmp_path, playwright, chromium_path):
    noise = np.random.default_rng(1).standard_normal(RATE) * 0.1
    sound = np.concatenate([np.zeros(RATE), noise, np.zeros(6 * RATE)])
    soundfile.write(tmp_path / "mic.wav", sound, RATE, subtype="PCM_16")
    arguments = ["--no-sandbox", "--disable-gpu",
                 "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
                 f"--use-file-for-fake-audio-capture={tmp_path / 'mic.wav'}%noloop",
                 "--autoplay-policy=no-user-gesture-required"]  # fmt: skip
    trouble = []
    browser = playwright.chromium.launch(executable_path=chromium_path, args=arguments)
    page = browser.new_page()
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(address)
    page.click("#talk")
    page.wait_for_function("document.getElementById('log').textContent.includes('what you said')", timeout=20_000)
    page.wait_for_function(
        "(() => { const c = document.getElementById('levels'); const d = c.getContext('2d')"
        ".getImageData(0, 61, c.width, 40).data; return d.some((v) => v > 0); })()"
    )
    page.click("#stop")
    page.wait_for_function("document.getElementById('state').textContent === 'ended'")
    assert page.is_enabled("#talk")
    browser.close()
    # This test reads the picture, more than once on a slow machine; the page itself never does.
    assert [text for text in trouble if "getImageData" not in text] == []
