"""Tightness, time and validity of our bounds beside public tools, on the same samples.

    python -m benchmarks.comparison --tools-python PATH --markdown docs/comparison.md

Public tools run in whichever interpreter has them: this one, or the one that is named. A tool that neither has is shown with
the values in benchmarks/data/public_tools.json, marked as recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.comparison_page import render, write
from benchmarks.comparison_runs import FULL, QUICK, NoInterpreter, measure


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples and few repeats: to see that it works")
    parser.add_argument("--tools-python", metavar="PATH", help="an interpreter that has the public tools installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every single value is written")
    parser.add_argument("--from-json", type=Path, metavar="FILE", help="show what an earlier run wrote, and run nothing")
    parser.add_argument("--public-from", type=Path, metavar="FILE", help="take tools that are not here from an earlier run")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the file whose tables are replaced")
    chosen = parser.parse_args(arguments)
    if chosen.from_json:
        result = json.loads(chosen.from_json.read_text(encoding="utf-8"))
    else:
        interpreters = (sys.executable, *([chosen.tools_python] if chosen.tools_python else []))
        earlier = json.loads(chosen.public_from.read_text(encoding="utf-8")) if chosen.public_from else None
        plan = QUICK if chosen.quick else FULL
        try:
            result = measure(plan, interpreters, lambda what: print(what, file=sys.stderr, flush=True), earlier)
        except NoInterpreter as error:
            parser.error(f"--tools-python: {error}")
        except ValueError as error:
            parser.error(f"--public-from: {error}")
    if chosen.json:
        chosen.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    shown = render(result)
    if chosen.markdown:
        write(chosen.markdown, shown)
    else:
        print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
