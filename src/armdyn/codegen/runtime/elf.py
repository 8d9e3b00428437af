"""A minimal linker: object code of a kernel -> an image in memory.

Kernels refer to no external symbol (they call functions through the context) and address their constants relative to
the program counter, so their objects consist of a few sections and PC-relative relocations. Objects that need more are
left to LLVM's own loader (`UnsupportedObjectError`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
RELOCATABLE, X86_64 = 1, 62  # e_type, e_machine
PROGBITS, SYMBOLS, RELOCATIONS, NOBITS = 1, 2, 4, 8  # types of sections
ALLOCATED, WRITABLE = 2, 1  # flags of sections
UNWIND = b".eh_frame"  # for exceptions, which kernels do not throw
PC32, PLT32 = 2, 4  # R_X86_64_PC32, R_X86_64_PLT32: 32 bits, PC-relative


class UnsupportedObjectError(Exception):
    """An object that this linker does not support."""


class Section(NamedTuple):
    """An ELF section header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class Image(NamedTuple):
    """Position-independent machine code: the sections in sequence, and the offsets of the functions."""

    content: bytes
    functions: dict[str, int]


def linked(code: bytes) -> Image:
    """Link an ELF object for x86-64 to an image, which must be loaded at the start of a page."""
    if not code.startswith(MAGIC) or struct.unpack_from("<HH", code, 16) != (RELOCATABLE, X86_64):
        raise UnsupportedObjectError("not a relocatable ELF object for x86-64")
    start = struct.unpack_from("<Q", code, 40)[0]
    count, names = struct.unpack_from("<HH", code, 60)
    sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * k)) for k in range(count)]
    image = bytearray()
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        if section.flags & ALLOCATED and _text(code, sections[names].offset + section.name) != UNWIND:
            if section.kind != PROGBITS or section.flags & WRITABLE:
                raise UnsupportedObjectError("a writable section")
            image += bytes(-len(image) % section.align)
            places[number] = len(image)
            image += code[section.offset : section.offset + section.size]
    for section in sections:
        if section.kind == RELOCATIONS and section.info in places:
            _relocate(image, code, sections, places, section)
    return Image(bytes(image), _functions(code, sections, places))


def _text(code: bytes, at: int) -> bytes:
    return code[at : code.index(b"\0", at)]


def _symbol(code: bytes, table: Section, number: int) -> tuple[int, int, int, int]:
    """(name, info, section, value)."""
    name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", code, table.offset + 24 * number)
    return name, info, section, value


def _relocate(
    image: bytearray, code: bytes, sections: list[Section], places: dict[int, int], relocations: Section
) -> None:
    for at in range(relocations.offset, relocations.offset + relocations.size, 24):
        where, what, addend = struct.unpack_from("<QQq", code, at)
        _, _, section, value = _symbol(code, sections[relocations.link], what >> 32)
        if what & 0xFFFFFFFF not in (PC32, PLT32) or section not in places:
            raise UnsupportedObjectError(f"relocation {what & 0xFFFFFFFF} to section {section}")
        place = places[relocations.info] + where
        struct.pack_into("<i", image, place, places[section] + value + addend - place)


def _functions(code: bytes, sections: list[Section], places: dict[int, int]) -> dict[str, int]:
    """The offsets of the global functions."""
    found = {}
    for table in (section for section in sections if section.kind == SYMBOLS):
        for number in range(table.size // 24):
            name, info, section, value = _symbol(code, table, number)
            if info >> 4 == 1 and section in places:  # STB_GLOBAL
                found[_text(code, sections[table.link].offset + name).decode()] = places[section] + value
    return found
