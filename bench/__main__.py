"""Runs the benches named on the command line, or all; exit status 1 when a budget is broken, 2 for an unknown name."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

from rich.console import Console
from rich.table import Table

import bench


def main(wanted: list[str]) -> int:
    names = sorted(module.name for module in iter_modules(bench.__path__) if not module.name.startswith("_"))
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"no bench {', '.join(unknown)}: there are {', '.join(names)}", file=sys.stderr)
        return 2
    table = Table("bench", "what")
    for heading in ("measured", "budget"):
        table.add_column(heading, justify="right")
    broken = False
    for name in wanted or names:
        for measure in import_module(f"bench.{name}").run():
            broken |= not measure.within
            budget = "" if measure.budget is None else f"{measure.budget:g} {measure.unit}"
            style = None if measure.within else "bold red"
            table.add_row(name, measure.what, f"{measure.value:.4g} {measure.unit}", budget, style=style)
    Console().print(table)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
