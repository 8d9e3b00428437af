"""Coverage-guided fuzzing of the URDF and TOML readers with Atheris: an error of ours, or an arm; never anything else.

    pip install atheris
    python benchmarks/fuzz_readers.py toml -max_total_time=600 corpus_toml
    python benchmarks/fuzz_readers.py urdf -max_total_time=600 corpus_urdf

The corpus folder is filled with the catalogue's arms when it is empty. Everything after the format goes to libFuzzer;
an input that fails is written to `crash-…` in the working folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["armdyn.files", "armdyn.chain", "armdyn.algebra", "tomllib"]):
    import armdyn
    from armdyn.errors import ArmdynError
    from armdyn.files import toml, urdf_out


def fill(corpus: Path, suffix: str) -> None:
    """The catalogue's arms as first inputs."""
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        write = toml.text if suffix == ".toml" else urdf_out.text
        for name in armdyn.catalogue():
            (corpus / (name + suffix)).write_text(write(armdyn.load(name).description), encoding="utf-8")


def main() -> None:
    """Fuzz one reader."""
    if len(sys.argv) < 3 or sys.argv[1] not in ("toml", "urdf"):
        raise SystemExit(__doc__)
    suffix, corpus = f".{sys.argv[1]}", Path(sys.argv[-1])
    fill(corpus, suffix)
    path = corpus.parent / f"fuzzed-{corpus.name}{suffix}"

    def one(data: bytes) -> None:
        path.write_bytes(data)
        try:
            arm = armdyn.load(path)
            arm.check()
            repr(arm)
        except ArmdynError as error:
            if not str(error).strip():
                raise RuntimeError("an error without a message") from error

    atheris.Setup([sys.argv[0], *sys.argv[2:]], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
