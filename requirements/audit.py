"""Known vulnerabilities of what the lock files name: `make audit` runs this in the environment of audit.lock.

Exit code 0: everything was looked up and nothing is known; 1: something is known; 3: the advisory service did not know
the packages or was not reached, so that nothing is shown.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = ("cluster.lock", "models.lock")


def main() -> int:
    """Audit each lock file, print what is known, and what could not be looked up."""
    code = 0
    for name in LOCKS:
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
        done = subprocess.run(
            [*command, "--format", "json", "-r", str(HERE / name)], capture_output=True, text=True, check=False
        )
        try:
            found = json.loads(done.stdout)["dependencies"]
        except (ValueError, KeyError):
            sys.stderr.write(f"{name}: not audited: {done.stderr.strip()[-500:]}\n")
            code = code or 3
            continue
        known = [(one["name"], one["version"], flaw["id"], ", ".join(flaw["fix_versions"]) or "no version")
                 for one in found for flaw in one.get("vulns", ())]  # fmt: skip
        skipped = [one["name"] for one in found if "skip_reason" in one]
        sys.stdout.write(
            f"{name}: {len(found) - len(skipped)} of {len(found)} packages looked up, {len(known)} known\n"
        )
        for package, version, flaw, fixed in known:
            sys.stdout.write(f"  {package} {version}: {flaw}, fixed in {fixed}\n")
        if known:
            code = 1
        elif skipped:
            sys.stderr.write(
                f"{name}: {len(skipped)} packages could not be looked up (the advisory service is not reached, "
                "or does not know them): this shows nothing of them\n"
            )
            code = code or 3
    return code


if __name__ == "__main__":
    raise SystemExit(main())
