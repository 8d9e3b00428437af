"""ELF objects: a minimal linker for kernels, and the inspection of objects for other processors.

The linker makes an image in memory from the object code of a kernel. Kernels refer to no external symbol (they call
functions through the context) and address their constants relative to the program counter, so their objects consist of
a few sections and PC-relative relocations. Objects that need more are left to LLVM's own loader
(`UnsupportedObjectError`).

Inspection tells the sections, the symbols, and the number of instructions of a function.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from armdyn.errors import ComputationError
from armdyn.values import cached_property

MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
RELOCATABLE, X86_64 = 1, 62  # e_type, e_machine
PROGBITS, SYMBOLS, RELOCATIONS, NOBITS = 1, 2, 4, 8  # types of sections
ALLOCATED, WRITABLE = 2, 1  # flags of sections
UNWIND = b".eh_frame"  # for exceptions, which kernels do not throw
PC32, PLT32 = 2, 4  # R_X86_64_PC32, R_X86_64_PLT32: 32 bits, PC-relative


class UnsupportedObjectError(Exception):
    """An object that this linker does not support."""


class SectionHeader(NamedTuple):
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
    sections = [SectionHeader(*struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * k)) for k in range(count)]
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


def _symbol(code: bytes, table: SectionHeader, number: int) -> tuple[int, int, int, int]:
    """(name, info, section, value)."""
    name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", code, table.offset + 24 * number)
    return name, info, section, value


def _relocate(
    image: bytearray, code: bytes, sections: list[SectionHeader], places: dict[int, int], relocations: SectionHeader
) -> None:
    for at in range(relocations.offset, relocations.offset + relocations.size, 24):
        where, what, addend = struct.unpack_from("<QQq", code, at)
        _, _, section, value = _symbol(code, sections[relocations.link], what >> 32)
        if what & 0xFFFFFFFF not in (PC32, PLT32) or section not in places:
            raise UnsupportedObjectError(f"relocation {what & 0xFFFFFFFF} to section {section}")
        place = places[relocations.info] + where
        struct.pack_into("<i", image, place, places[section] + value + addend - place)


def _functions(code: bytes, sections: list[SectionHeader], places: dict[int, int]) -> dict[str, int]:
    """The offsets of the global functions."""
    found = {}
    for table in (section for section in sections if section.kind == SYMBOLS):
        for number in range(table.size // 24):
            name, info, section, value = _symbol(code, table, number)
            if info >> 4 == 1 and section in places:  # STB_GLOBAL
                found[_text(code, sections[table.link].offset + name).decode()] = places[section] + value
    return found


ARM, AARCH64, RISCV = 40, 183, 243  # e_machine
FUNCTION, GLOBAL = 2, 1  # type and binding of symbols


class Section(NamedTuple):
    """A section: its name, type, flags, location of its bytes, and the section that its header links to."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int


class ElfSymbol(NamedTuple):
    """A symbol: its name, value, size, type and binding, and the index of its section (0: undefined)."""

    name: str
    value: int
    size: int
    kind: int
    binding: int
    section: int


class Elf:
    """A little-endian ELF object of 32 or 64 bits."""

    def __init__(self, code: bytes) -> None:
        if code[:4] != b"\x7fELF" or code[4] not in (1, 2) or code[5] != 1:
            raise ComputationError("not a little-endian ELF object")
        self.code = code
        self.wide = code[4] == 2
        self.machine: int = struct.unpack_from("<H", code, 18)[0]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Every section, in the order of the headers."""
        start = struct.unpack_from("<Q", self.code, 40)[0] if self.wide else struct.unpack_from("<I", self.code, 32)[0]
        size, count, names = struct.unpack_from("<HHH", self.code, 58 if self.wide else 46)
        form = "<IIQQQQI" if self.wide else "<IIIIIII"
        heads = [struct.unpack_from(form, self.code, start + size * k) for k in range(count)]
        at = heads[names][4]
        return tuple(
            Section(self._text(at + name), kind, flags, offset, length, link)
            for name, kind, flags, _, offset, length, link in heads
        )

    @cached_property
    def symbols(self) -> tuple[ElfSymbol, ...]:
        """Every symbol."""
        found = []
        for table in (section for section in self.sections if section.kind == SYMBOLS):
            names = self.sections[table.link].offset
            step = 24 if self.wide else 16
            for at in range(table.offset, table.offset + table.size, step):
                if self.wide:
                    name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.code, at)
                else:
                    name, value, size, info, _, section = struct.unpack_from("<IIIBBH", self.code, at)
                found.append(ElfSymbol(self._text(names + name), value, size, info & 15, info >> 4, section))
        return tuple(found)

    @cached_property
    def functions(self) -> dict[str, ElfSymbol]:
        """The functions, by name."""
        return {symbol.name: symbol for symbol in self.symbols if symbol.kind == FUNCTION}

    @property
    def undefined(self) -> tuple[str, ...]:
        """The undefined symbols."""
        return tuple(s.name for s in self.symbols if s.section == 0 and s.binding == GLOBAL)

    def allocated(self, *names: str) -> int:
        """Total size in bytes of the read-only allocated sections, of those with these names or of all."""
        wanted = [s for s in self.sections if s.flags & ALLOCATED and not s.flags & WRITABLE and s.kind != NOBITS]
        return sum(section.size for section in wanted if not names or section.name in names)

    def _text(self, at: int) -> str:
        return self.code[at : self.code.index(b"\0", at)].decode()


def instructions(elf: Elf, function: str) -> int:
    """The number of instructions of a function, without embedded constants, which mapping symbols mark."""
    symbol = elf.functions[function]
    first = symbol.value & ~1 if elf.machine == ARM else symbol.value  # the last bit marks Thumb code
    marks = sorted(
        (other.value, other.name[1] != "d")
        for other in elf.symbols
        if other.section == symbol.section and other.name[:2] in ("$t", "$x", "$d")
    )
    content = elf.sections[symbol.section].offset
    at, count = first, 0
    while at < first + symbol.size:
        code = next((is_code for value, is_code in reversed(marks) if value <= at), True)
        if not code:
            at = next((value for value, is_code in marks if is_code and value > at), first + symbol.size)
            continue
        at += _length(elf.machine, struct.unpack_from("<H", elf.code, content + at)[0])
        count += 1
    return count


def _length(machine: int, half: int) -> int:
    """The length in bytes of the instruction that begins with these sixteen bits."""
    if machine == ARM:  # Thumb-2
        return 4 if half >> 11 in (0b11101, 0b11110, 0b11111) else 2
    return 4 if machine == AARCH64 or half & 3 == 3 else 2
