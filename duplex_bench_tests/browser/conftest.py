import importlib.util
import shutil
from pathlib import Path

import pytest

REPORTING = Path(__file__).parents[1] / "reporting" / "factory.py"


@pytest.fixture(scope="session")
def report_factory():
    spec = importlib.util.spec_from_file_location("reporting_factory_for_browser", REPORTING)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built_report(report_factory, tmp_path_factory):
    from duplex_bench.reporting.site import build_site

    inputs = report_factory.Factory(tmp_path_factory.mktemp("blobs")).inputs(scenarios=4, conversations=4)
    return build_site(inputs, tmp_path_factory.mktemp("site") / "a report").parent


@pytest.fixture(scope="session")
def playwright():
    """One for all tests: a second in the same process is refused."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium_path():
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("chromium is not installed: run `make test-browser`, which installs it")
    return path


@pytest.fixture(scope="session")
def chromium(playwright, chromium_path):
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    browser = playwright.chromium.launch(executable_path=chromium_path, args=arguments)
    yield browser
    browser.close()


@pytest.fixture
def tab(chromium):
    """A page that fails its test when anything is logged, thrown, or asked of anything but the disk."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    trouble = []
    page.on("console", lambda message: trouble.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
    page.on(
        "request",
        lambda request: trouble.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    yield page
    context.close()
    assert trouble == []
