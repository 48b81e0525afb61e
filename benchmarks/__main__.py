"""Run every benchmark, one after the other; the exit code says whether each kept its limits."""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> int:
    """Run the benchmarks named on the command line, or all."""
    names = sys.argv[1:] or [
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
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
