"""Does a change of the source change the machine code? Digests of every kernel's code, to compare two source trees.

    PYTHONPATH=old/src python benchmarks/object_code.py -o old.json [--arms puma560,panda] [--quick]
    PYTHONPATH=new/src python benchmarks/object_code.py -o new.json [--arms puma560,panda] [--quick]
    python benchmarks/object_code.py --compare old.json new.json

For every arm, quantity and option there is one SHA-256 per processor (x86-64 with 2, 4 and 8 lanes, whatever the host
is) over the sections that are loaded, with their relocations resolved to section and offset; names of symbols do not
count. Beside it stand the operation counts, and for the first arm the loops of `simulate` on this machine. All ten arms
take several minutes of one core; `--quick` takes one processor and no options.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import struct
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import armdyn
from armdyn.formulations import QUANTITIES

ARMS = ("puma560", "stanford", "scara", "planar3", "ur5", "ur10", "panda", "iiwa14", "kinova_gen3", "xarm7")
OPTIONS: dict[str, dict[str, Any]] = {
    "inverse_dynamics": {"friction": True, "derivatives": ("q", "qd", "qdd")},
    "forward_dynamics": {"friction": True, "derivatives": ("q", "qd", "tau")},
    "inertia_matrix": {"parameters": "runtime"},
    "bias": {"parameters": "runtime"},
}
ALLOCATED, BSS, RELOCATIONS_WITH_ADDEND = 2, 8, 4  # SHF_ALLOC, SHT_NOBITS, SHT_RELA


def module(*names: str) -> Any:
    """The first of several modules that this source tree has."""
    for name in names:
        try:
            return import_module(f"armdyn.{name}")
        except ModuleNotFoundError:
            continue
    raise SystemExit(f"none of {', '.join(names)} is in {armdyn.__path__}")


def processors(quick: bool) -> dict[str, Any]:
    """Targets that do not depend on the machine at hand: 2, 4 and 8 lanes."""
    target = module("codegen.target", "backends.target")
    triple = target.binding().get_process_triple()
    all_of_them = {
        "x86-64": target.Target(triple, "x86-64", "", 2, False),
        "haswell": target.Target(triple, "haswell", "+avx,+avx2,+fma", 4, True),
        "skylake-avx512": target.Target(triple, "skylake-avx512", "+avx,+avx2,+fma,+avx512f", 8, True),
    }
    return {"haswell": all_of_them["haswell"]} if quick else all_of_them


def digest(code: bytes) -> str:
    """SHA-256 of what an ELF object has loaded, without the names of its symbols."""
    start = struct.unpack_from("<Q", code, 40)[0]
    count = struct.unpack_from("<H", code, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * k) for k in range(count)]
    result = hashlib.sha256()
    for _, kind, flags, _, offset, size, link, info, _, _ in sections:
        if kind == RELOCATIONS_WITH_ADDEND and sections[info][2] & ALLOCATED:
            symbols = sections[link][4]
            for at in range(offset, offset + size, 24):
                where, what, addend = struct.unpack_from("<QQq", code, at)
                _, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", code, symbols + 24 * (what >> 32))
                result.update(struct.pack("<QQQQq", where, what & 0xFFFFFFFF, section, value, addend))
        elif flags & ALLOCATED and kind != BSS:
            result.update(code[offset : offset + size])
    return result.hexdigest()


def programs(arms: list[str], quick: bool) -> Iterator[tuple[str, Any]]:
    """Label and program of every kernel."""
    for name in arms:
        arm = armdyn.load(name)
        for quantity in QUANTITIES:
            kernel = getattr(arm, quantity)
            yield f"{name} {quantity}", kernel.program
            for option, value in () if quick else OPTIONS.get(quantity, {}).items():
                yield f"{name} {quantity} {option}", kernel.variant(**{option: value}).program


def snapshot(arms: list[str], quick: bool) -> dict[str, Any]:
    """Operation counts and digests by label."""
    compiler = module("codegen.compile", "codegen.llvm", "backends.llvm")
    uniform = (("parameters",),) if "uniform" in compiler.object_code.__annotations__ else ()
    targets = processors(quick)
    result: dict[str, Any] = {}
    for label, program in programs(arms, quick):
        counts = program.operations
        result[label] = {"operations": [counts.mul, counts.add, counts.div, counts.trig]}
        if all(port.nodes for port in (*program.inputs, *program.outputs)):
            result[label] |= {
                name: digest(compiler.object_code(program, target, *uniform)) for name, target in targets.items()
            }
    return result | loops(arms[0])


def loops(name: str) -> dict[str, Any]:
    """The loops over steps that `simulate` compiles for this machine: explicit, multistep and implicit methods."""
    jit = module("codegen.jit", "codegen.runtime.jit")
    arm, real = armdyn.load(name), jit.object_code
    result: dict[str, Any] = {}
    os.environ["ARMDYN_CACHE"] = "off"
    for method, limits in itertools.product(("RK4", "AB4", "ARK4"), (False, "stop")):
        codes: list[str] = []

        def keep(*asked: Any, codes: list[str] = codes, **options: Any) -> bytes:
            code: bytes = real(*asked, **options)
            codes.append(digest(code))
            return code

        jit.object_code = keep
        try:
            armdyn.simulate(arm, duration=0.1, method=method, limits=limits)
        finally:
            jit.object_code = real
        result[f"{name} simulate {method} limits={limits}"] = {f"module {k}": code for k, code in enumerate(codes)}
    return result


def compare(before: Path, after: Path) -> int:
    """Print what differs; how many kernels do."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    differing = [label for label in old if label in new and old[label] != new[label]]
    for label in differing:
        parts = [key for key in old[label] if old[label][key] != new[label].get(key)]
        more = f" {old[label]['operations']} -> {new[label]['operations']}" if "operations" in parts else ""
        print(f"{label}: {', '.join(parts)}{more}")
    missing = sorted(old.keys() ^ new.keys())
    print(f"{len(old.keys() & new.keys())} kernels in both, {len(differing)} differ; in one only: {missing or 'none'}")
    return len(differing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compare", nargs=2, type=Path)
    asked = parser.parse_args()
    if asked.compare:
        sys.exit(1 if compare(*asked.compare) else 0)
    text = json.dumps(snapshot(asked.arms.split(","), asked.quick), indent=1)
    if asked.output:
        asked.output.write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
