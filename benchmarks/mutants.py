"""Plant one error at a time in the source and see whether a test notices.

    make mutants                     # 20 errors
    make mutants COUNT=150 SEED=7    # goes on where an interrupted run with this seed stopped
    python benchmarks/mutants.py reach tests/test_cache.py   # only record what the tests of these files enter
    python benchmarks/mutants.py show --seed 7

First every test file runs once with a tracer that records which functions each test enters (`out/mutants/reach`, kept
until the test file changes). Then errors are drawn from the seed, room by room: a comparison turned, a sign, a
constant, `not`, `abs` or `sorted` dropped, a condition negated, a statement left out. The tests that enter the function
run in a copy of the repository, the quickest first, until one fails. `equivalent_mutants.txt` lists errors that change
nothing, each with its reason.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/armdyn")
EQUIVALENT = ROOT / "benchmarks" / "equivalent_mutants.txt"
TURNED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.Is: ("is", "is not"),
    ast.NotIn: ("not in", "in"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
DROPPED = {"abs", "sorted", "reversed", "float", "tuple", "list"}
COMMUTATIVE = {"maximum", "minimum", "hypot", "gcd", "lcm", "isinstance", "getattr", "hasattr"}  # or an error at once
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "argmax": "argmin"}
ALWAYS_IN_TEXT = (ast.JoinedStr, ast.Raise, ast.Assert)  # messages; positions within f-strings are not reliable


@dataclass(frozen=True)
class Mutant:
    """One error: bytes `start` to `end` of a file become `new`."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str
    function: str  # the innermost function around it, "" at module level

    @property
    def key(self) -> str:
        """What names it in `equivalent_mutants.txt`: robust to lines that move."""
        return f"{self.file} {self.function or '<module>'} {self.old!r} -> {self.new!r}"


class Sites(ast.NodeVisitor):
    """All places of a file at which an error can be planted."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []
        self.names: list[str] = []
        self.functions: list[str] = []
        self.visit(ast.parse(source))

    def span(self, node: Any) -> tuple[int, int]:
        """The bytes of a node."""
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def plant(self, start: int, end: int, new: str) -> None:
        """Note an error if the source really changes."""
        old = self.source[start:end].decode()
        line = bisect.bisect_right(self.starts, start)
        self.found.append(Mutant(self.file, line, start, end, old, new, self.functions[-1] if self.functions else ""))

    def between(self, left: Any, right: Any, operator: Any) -> None:
        """Turn the operator between two operands."""
        if type(operator) in TURNED:
            old, new = TURNED[type(operator)]
            start, end = self.span(left)[1], self.span(right)[0]
            at = self.source.find(old.encode(), start, end)
            if at >= 0:
                self.plant(at, at + len(old), new)

    def visit(self, node: Any) -> None:
        """Visit a node, but not texts, annotations and docstrings."""
        if isinstance(node, ALWAYS_IN_TEXT):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.names.append(node.name)
            if not isinstance(node, ast.ClassDef):
                self.functions.append(".".join(self.names))
                self.names.append("<locals>")
            defaults = [] if isinstance(node, ast.ClassDef) else [*node.args.defaults, *node.args.kw_defaults]
            for child in (*defaults, *node.body):
                if child is not None:
                    self.visit(child)
            if not isinstance(node, ast.ClassDef):
                self.names.pop()
                self.functions.pop()
            self.names.pop()
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        super().visit(node)

    def visit_If(self, node: Any) -> None:
        """Negate a condition."""
        if ast.unparse(node.test) != "TYPE_CHECKING":
            start, end = self.span(node.test)
            self.plant(start, end, f"not ({self.source[start:end].decode()})")
            self.generic_visit(node)

    visit_IfExp = visit_While = visit_If

    def visit_Compare(self, node: Any) -> None:
        """Turn comparisons."""
        for left, operator, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            self.between(left, right, operator)
        self.generic_visit(node)

    def visit_BinOp(self, node: Any) -> None:
        """Turn arithmetic."""
        if not any(isinstance(x, ast.JoinedStr) or (isinstance(x, ast.Constant) and isinstance(x.value, str))
                   for x in (node.left, node.right)):  # fmt: skip
            self.between(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_BoolOp(self, node: Any) -> None:
        """`and` to `or` and the reverse."""
        self.between(node.values[0], node.values[1], node.op)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: Any) -> None:
        """Drop `not` and a minus."""
        if isinstance(node.op, ast.Not | ast.USub):
            self.plant(*self.span(node), f"({self.source[slice(*self.span(node.operand))].decode()})")
        self.generic_visit(node)

    def visit_Constant(self, node: Any) -> None:
        """Another number, the other truth."""
        value = node.value
        if isinstance(value, bool):
            self.plant(*self.span(node), repr(not value))
        elif isinstance(value, int):
            self.plant(*self.span(node), repr(value + 1))
        elif isinstance(value, float) and value:
            self.plant(*self.span(node), repr(value * 2))

    def visit_Call(self, node: Any) -> None:
        """Drop `abs` or `sorted`, take `max` for `min`, exchange two arguments."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in DROPPED and isinstance(node.func, ast.Name) and len(node.args) == 1:
            kept = self.source[slice(*self.span(node.args[0]))].decode()
            self.plant(*self.span(node), f"list({kept})" if name in ("sorted", "reversed") else f"({kept})")
        elif name in DROPPED and name == "abs" and node.args:
            self.plant(*self.span(node), f"({self.source[slice(*self.span(node.args[0]))].decode()})")
        if name in EXCHANGED:
            end = self.span(node.func)[1]
            self.plant(end - len(name), end, EXCHANGED[name])
        if len(node.args) == 2 and not any(isinstance(x, ast.Starred) for x in node.args) and name not in EXCHANGED:
            (a, b), (c, d) = map(self.span, node.args)
            first, gap, second = (self.source[i:j].decode() for i, j in ((a, b), (b, c), (c, d)))
            if first != second and name not in COMMUTATIVE:
                self.plant(a, d, second + gap + first)
        self.generic_visit(node)

    def visit_keyword(self, node: Any) -> None:
        """`strict` of `zip` changes nothing where lengths agree."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Expr(self, node: Any) -> None:
        """Leave out a call; docstrings stay."""
        if isinstance(node.value, ast.Call):
            self.plant(*self.span(node), "None")
            self.generic_visit(node)

    def visit_AugAssign(self, node: Any) -> None:
        """Leave out `x += y`."""
        self.plant(*self.span(node), "None")
        self.generic_visit(node)


def rooms() -> dict[str, list[Path]]:
    """The files of each part of the package, by its folder; the modules beside the folders are one part."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).parts
        found[parts[0] if len(parts) > 1 else "."].append(path.relative_to(ROOT))
    return found


def drawn(seed: int, only: list[str]) -> Iterator[Mutant]:
    """Errors without end: each room in turn, in a room every place with the same probability."""
    rng = random.Random(seed)
    chosen = {name: files for name, files in rooms().items() if not only or name in only}
    sites = {}
    for name, files in chosen.items():
        found = [site for file in files for site in Sites(str(file), (ROOT / file).read_bytes()).found]
        if found:
            rng.shuffle(found)
            sites[name] = found
    while any(sites.values()):
        order = [name for name in sites if sites[name]]
        rng.shuffle(order)
        for name in order:
            yield sites[name].pop()


class Reach:
    """A pytest plugin that records which functions of the package every test enters."""

    def __init__(self, package: Path, out: Path) -> None:
        self.package, self.out = str(package) + os.sep, out
        self.entered: set[str] = set()
        self.tests: dict[str, dict[str, Any]] = {}
        self.names: dict[Any, str | None] = {}

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the function; without a local tracer lines cost nothing."""
        code = frame.f_code
        try:
            name = self.names[code]
        except KeyError:
            inside = code.co_filename.startswith(self.package)
            name = f"{code.co_filename[len(self.package) :]}:{code.co_qualname}" if inside else None
            self.names[code] = name
        if name is not None:
            self.entered.add(name)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start with nothing entered."""
        import threading

        self.entered.clear()
        self.begun = time.perf_counter()
        threading.settrace(self.trace)  # type: ignore[arg-type]
        sys.settrace(self.trace)  # type: ignore[arg-type]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test that is skipped or fails sees nothing."""
        if report.outcome != "passed":
            self.tests.pop(report.nodeid, None)
            self.entered.clear()
        elif report.when == "teardown":
            seconds = time.perf_counter() - self.begun
            self.tests[report.nodeid] = {"seconds": round(seconds, 3), "entered": sorted(self.entered)}

    def pytest_sessionfinish(self) -> None:
        """Keep it."""
        sys.settrace(None)
        self.out.write_text(json.dumps(self.tests))


def copied(place: Path) -> Path:
    """A copy of the files under version control, in which errors are planted."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


def test_files(only: list[str]) -> list[Path]:
    """The test files whose tests `make test` runs."""
    return [Path(name) for name in only] or sorted(p.relative_to(ROOT) for p in (ROOT / "tests").glob("test_*.py"))


def environment(place: Path) -> dict[str, str]:
    """The package of the copy, with a kernel cache of its own."""
    return os.environ | {"COLUMNS": "400", "PYTHONPATH": str(place / "src"), "ARMDYN_CACHE": str(place / "kernels")}


def record(files: list[Path], out: Path, until: float) -> None:
    """What the tests of each file enter; files that were recorded and have not changed are left out."""
    place = out / "reach"
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]
        kept = place / f"{file.stem}-{digest}.json"
        if kept.exists() or time.monotonic() > until:
            continue
        for old in place.glob(f"{file.stem}-*.json"):
            if re.fullmatch(rf"{file.stem}-[0-9a-f]{{12}}", old.stem):
                old.unlink()
        code = (
            "import sys, pytest; from pathlib import Path; sys.path.insert(0, 'benchmarks'); from mutants import Reach;"
            f"pytest.main(['-n0', '-q', '-p', 'no:cacheprovider', '--no-header', {str(file)!r}],"
            f" plugins=[Reach(Path({str(ROOT / PACKAGE)!r}), Path({str(kept.with_suffix('.part'))!r}))])"
        )
        begun = time.monotonic()
        there = environment(ROOT) | {"ARMDYN_CACHE": str(out / "kernels")}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=there, check=False, **quiet)
        if kept.with_suffix(".part").exists():
            kept.with_suffix(".part").rename(kept)
        print(f"reach of {file}: {time.monotonic() - begun:.0f} s", flush=True)


class Map:
    """Which tests enter a function."""

    def __init__(self, out: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.by_function: dict[str, set[str]] = defaultdict(set)
        self.by_file: dict[str, set[str]] = defaultdict(set)
        for kept in sorted((out / "reach").glob("*.json")):
            for test, about in json.loads(kept.read_text()).items():
                self.seconds[test] = about["seconds"]
                for name in about["entered"]:
                    file, function = name.split(":", 1)
                    self.by_function[
                        f"{file}:{re.sub(r'(.<locals>)?.<(lambda|listcomp|genexpr|dictcomp|setcomp)>', '', function)}"
                    ].add(test)
                    self.by_file[file].add(test)

    def tests(self, mutant: Mutant, seconds: float) -> list[str]:
        """The tests that enter the function, quickest first, for about so many seconds."""
        file = str(Path(mutant.file).relative_to(PACKAGE))
        found = self.by_function[f"{file}:{mutant.function}"] if mutant.function else self.by_file[file]
        chosen, spent = [], 0.0
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            spent += self.seconds[test]
            if spent > seconds and chosen:
                break
            chosen.append(test)
        return chosen


def verdict(mutant: Mutant, tests: list[str], place: Path, limit: float) -> tuple[str, str]:
    """("caught" | "survived" | "unreached", how) of an error planted in the copy."""
    if not tests:
        return "unreached", ""
    source = (ROOT / mutant.file).read_bytes()
    planted = source[: mutant.start] + mutant.new.encode() + source[mutant.end :]
    try:
        compile(planted, mutant.file, "exec")
    except SyntaxError:
        return "invalid", ""
    (place / mutant.file).write_bytes(planted)
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--no-header"]
    try:
        ran = subprocess.run([*command, *tests], cwd=place, env=environment(place), capture_output=True, text=True,
                             timeout=limit, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "caught", "time limit"
    finally:
        (place / mutant.file).write_bytes(source)
    if ran.returncode == 0:
        return "survived", ""
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)$", ran.stdout, re.M)
    return "caught", failed[0][:300] if failed else ran.stdout[-300:]


def silent(result: dict[str, Any]) -> bool:
    """Whether the error computes something else instead of crashing: an assertion saw it, or nothing."""
    if result["verdict"] == "survived":
        return True
    return result["verdict"] == "caught" and bool(re.search(r" - (assert|AssertionError|Failed)", result["how"]))


def equivalent() -> dict[str, str]:
    """The errors that change nothing, with their reasons."""
    if not EQUIVALENT.exists():
        return {}
    lines = (line for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return dict(map(str.strip, line.split("  # ", 1)) for line in lines)


def campaign(asked: argparse.Namespace) -> None:
    """Plant errors until there are enough or the time is over."""
    out: Path = asked.out
    until = time.monotonic() + 60 * asked.minutes
    if not asked.recorded:
        record(test_files([]), out, until)
    reach, place = Map(out), out / "copy"
    shutil.rmtree(place, ignore_errors=True)
    copied(place)
    path = out / f"{asked.seed}.jsonl"
    done = {(r["file"], r["start"], r["new"]) for r in results(path)}
    judged = sum(r["verdict"] in ("caught", "survived") for r in results(path))
    for mutant in drawn(asked.seed, asked.rooms):
        if judged >= asked.count or time.monotonic() > until:
            break
        if (mutant.file, mutant.start, mutant.new) in done:
            continue
        tests = reach.tests(mutant, asked.seconds)
        begun = time.monotonic()
        expected = sum(reach.seconds[test] for test in tests)
        found, how = verdict(mutant, tests, place, 60 + 10 * expected)
        judged += found in ("caught", "survived")
        about = {"verdict": found, "how": how, "tests": len(tests), "seconds": round(time.monotonic() - begun, 1)}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(mutant) | about) + "\n")
        print(f"{judged:4d} {found:9} {mutant.file}:{mutant.line} {mutant.old!r} -> {mutant.new!r} "
              f"({len(tests)} tests, {about['seconds']} s)", flush=True)  # fmt: skip
    show(path)


def results(path: Path) -> list[dict[str, Any]]:
    """What was found so far."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def show(path: Path) -> None:
    """A table by room, and every survivor."""
    known = equivalent()
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for r in results(path):
        room = Path(r["file"]).relative_to(PACKAGE).parts
        mutant = Mutant(**{name: r[name] for name in Mutant.__dataclass_fields__})
        kind = "equivalent" if r["verdict"] == "survived" and mutant.key in known else r["verdict"]
        for name in (room[0] if len(room) > 1 else ".", "all"):
            rows[name][kind] += 1
            rows[name]["silent"] += silent(r) and kind != "equivalent"
            rows[name]["silent caught"] += silent(r) and kind == "caught"
        if kind == "survived":
            print(f"survived {r['file']}:{r['line']} ({r['tests']} tests)\n    {mutant.key}")
    for name, row in sorted(rows.items()):
        counted = row["caught"] + row["survived"]
        silent_ones = f"{row['silent caught']:4d} of {row['silent']:4d} silent ones"
        others = f"{row['equivalent']} equivalent, {row['unreached']} not reached"
        print(f"{name:16} {row['caught']:4d} of {counted:4d} caught; {silent_ones}; {others}")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "reach", "show"], nargs="?", default="run")
    parser.add_argument("files", nargs="*", help="test files of reach; all by default")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so many; the same command goes on later")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests per error")
    parser.add_argument("--recorded", action="store_true", help="go by the reach recorded so far")
    parser.add_argument("--rooms", nargs="+", default=[], help="folders of the package; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants")
    asked = parser.parse_args()
    asked.out = asked.out.resolve()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.task == "reach":
        record(test_files(asked.files), asked.out, time.monotonic() + 60 * asked.minutes)
    elif asked.task == "show":
        show(asked.out / f"{asked.seed}.jsonl")
    else:
        campaign(asked)


if __name__ == "__main__":
    main()
