"""Identifiers for generated code of every language, made from the names of robots."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

LONGEST = 64  # characters; file names and symbols add to it
# Stems of files that the file of a robot must not hide from `#include`, or that file systems of Windows do not have.
_STEMS = """
alloca assert complex ctype dirent dlfcn endian errno fcntl features fenv float ieee754 inttypes iso646 libio limits
locale malloc math memory netdb poll pthread sched semaphore setjmp signal stdalign stdarg stdatomic stdbool stddef
stdint stdio stdlib stdnoreturn string strings sys syscall termios tgmath threads time uchar unistd values wchar
wctype windows harness aux com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 con lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6
lpt7 lpt8 lpt9 nul prn
"""
STEMS = frozenset(_STEMS.split())
# What the files, symbols and macros of armdyn, of the FMI standard and of Eigen begin with.
PREFIXES = ("armdyn", "fmi", "eigen")


@cache
def reserved() -> frozenset[str]:
    """Keywords, and names that headers of C and C++ define."""
    lines = (files("armdyn.codegen.text") / "reserved.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def identifier(name: str) -> str:
    """An identifier for C, C++ and JavaScript, made from any name; it is the stem of file names, too.

    A word of ASCII letters, digits and single underscores that begins with a letter. Names that collide with words of
    these languages, of their headers or of armdyn get ``arm`` before or behind them; long names are cut, with a hash.
    """
    word = re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_")
    if not word:
        word = f"arm_{_hash(name)}" if name.strip() else "arm"
    if word[0].isdigit() or word.casefold().startswith(PREFIXES):
        word = f"arm_{word}"
    if word in reserved() or word.casefold() in STEMS:
        word = f"{word}_arm"
    return word if len(word) <= LONGEST else f"{word[: LONGEST - 9].rstrip('_')}_{_hash(name)}"


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
