"""Run every benchmark, one after the other; the exit code says whether each kept its limits.

What takes hours (``paper_size``) runs only when it is named.
"""

import importlib
import pkgutil
import sys

import benchmarks

HOURS = {"paper_size"}


def main() -> int:
    """Run the benchmarks named on the command line, or all but those that take hours."""
    names = sys.argv[1:] or [
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if not module.name.startswith("_") and module.name not in HOURS
    ]
    failed = []
    for name in names:
        print(f"== {name}")
        if importlib.import_module(f"benchmarks.{name}").main():
            failed.append(name)
    print(f"limits passed: {', '.join(failed)}" if failed else "every limit kept")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
