"""Reading xacro: a macro file is expanded to the text of a URDF by the `xacro` package, if it is installed.

The package keeps its state in its module's globals. Each expansion runs in a module object of its own, so that threads
do not disturb one another, and `$(find ...)`, the files that may be read, and where warnings go are set on that object.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from armdyn.errors import FileError, InputError, did_you_mean
from armdyn.files.packages import Packages
from armdyn.files.text import read_bytes

Arguments = Mapping[str, Any]
_HOW = "pip install 'armdyn[xacro]', or expand it elsewhere (xacro {name} > {stem}.urdf) and load that"
_MOST_FILES = 1000  # that an expansion may read; a robot takes some twenty
_LONGEST = 32 * 2**20  # characters of the expanded text
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ARGUMENT = re.compile(r"<(?:xacro:)?arg\s([^>]*)>")
_ATTRIBUTE = re.compile(r"""([\w:]+)\s*=\s*("[^"]*"|'[^']*')""")
_USE = re.compile(r"""\$\(\s*arg\s+([\w.-]+)\s*\)|\barg\(\s*['"]([\w.-]+)['"]\s*\)""")
_MACRO = re.compile(r"""<xacro:macro\s[^>]*?\bname\s*=\s*["']([^"']+)""")


def expanded(path: str | os.PathLike[str], arguments: Arguments, packages: Packages) -> tuple[str, list[str]]:
    """The URDF text of a .xacro file, and the warnings that its macros print.

    Expansion evaluates the expressions in the file: use it only for trusted files.
    """
    where = Path(path)
    read_bytes(where)  # the same errors for missing and too large files as for other formats
    package, substitution = _own_module("xacro", where), _own_module("xacro.substitution_args", where)
    run = _Expansion(where, {key: _word(key, value) for key, value in arguments.items()}, packages)
    warnings: list[str] = []

    def warned(*words: Any, **_: Any) -> str:
        said = " ".join(map(str, words))
        if "is deprecated" not in said:  # how an expression is written says nothing about the robot
            warnings.append(said)
        return ""

    def substituted(text: str) -> Any:
        if text == "$(cwd)":
            return os.getcwd()
        return substitution.resolve_args(text, {"arg": run.values, "filename": package.filestack[-1]})

    package.open = run.open
    package.warning = warned
    package.print_location = lambda: None
    package.eval_extension = substituted
    for name in ("warning", "message", "error"):  # which expressions in the file may call
        dict.__setitem__(package._global_symbols["xacro"], name, warned)
    substitution._eval_find = substitution._eval_dict["find"] = lambda name: os.fspath(packages.find(name))
    try:
        text = package.process_file(os.path.abspath(where), mappings=run.values, verbosity=0).toxml()
    except Exception as error:  # macros can raise anything
        run.explain(error)
    run.must_know(arguments)
    if len(text) > _LONGEST:
        raise FileError(f"{where.name}: the expanded text has {len(text)} characters; at most {_LONGEST} are read")
    if "<link" not in text and (macros := _MACRO.findall(run.texts[0])):
        raise FileError(
            f"{where.name} only defines macros ({', '.join(macros[:8])}) and calls none of them: load the file that "
            "includes it and calls them"
        )
    return str(text), warnings


def _own_module(name: str, where: Path) -> Any:
    """A new module object of an installed module, which is not entered into `sys.modules`."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.loader is None:
        how = _HOW.format(name=where.name, stem=where.name.split(".")[0])
        raise FileError(f"{where}: reading xacro needs the xacro package: {how}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _word(name: str, value: Any) -> str:
    """An argument's value as xacro takes it: text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise InputError(f"the xacro argument {name!r} must be text, a number or a bool, got {value!r}")


class _Values(dict[str, str]):
    """The values of the arguments; one without a value has its default, or is an error if there is none."""

    def __init__(self, values: Mapping[str, str], run: _Expansion) -> None:
        super().__init__(values)
        self.run = run

    def __missing__(self, name: str) -> str:
        default = self.run.arguments().get(name)
        if default is not None and "$" not in default:  # used above its declaration, as in <robot name="$(arg name)">
            return default
        raise FileError(
            f"{self.run.path.name}: the xacro argument {name!r} has no value and no default; give it with "
            f"armdyn.load(..., xacro={{{name!r}: ...}}) (command line: --xacro {name}=...). {self.run.declared()}"
        )


class _Expansion:
    """One expansion: its arguments, and the files that it reads."""

    def __init__(self, path: Path, arguments: Mapping[str, str], packages: Packages) -> None:
        self.path = path
        self.packages = packages
        self.given = arguments
        self.values = _Values(arguments, self)
        self.texts: list[str] = []

    def open(self, name: str, mode: str = "r") -> io.BytesIO:
        """A file to include, if it may be read; replaces the built-in function in the xacro package."""
        where = self.packages.confined(name)
        os.stat(where)  # a missing file is an OSError, which an optional <xacro:include> forgives
        data = read_bytes(where)
        if len(self.texts) >= _MOST_FILES:
            raise FileError(f"{self.path.name} includes more than {_MOST_FILES} files")
        if re.search(rb"<!(DOCTYPE|ENTITY)", data):
            raise FileError(f"{where}: a document type (<!DOCTYPE>) is not allowed in a xacro file")
        self.texts.append(_COMMENT.sub("", data.decode("utf-8", "replace")))
        return io.BytesIO(data)

    def arguments(self) -> dict[str, str | None]:
        """The arguments that the files declare, in order, with their defaults; None for those only used."""
        table: dict[str, str | None] = {}
        for text in self.texts:
            for found in _ARGUMENT.finditer(text):
                attributes = {key: value[1:-1] for key, value in _ATTRIBUTE.findall(found[1])}
                if "name" in attributes:
                    table.setdefault(attributes["name"], attributes.get("default"))
        for text in self.texts:
            for found in _USE.finditer(text):
                table.setdefault(found[1] or found[2], None)
        return table

    def declared(self) -> str:
        """The declared arguments as a sentence."""
        shown = [name if default is None else f"{name}={default!r}" for name, default in self.arguments().items()]
        return f"Its arguments are {', '.join(shown)}" if shown else "It declares no arguments"

    def must_know(self, names: Arguments) -> None:
        """An error for arguments that no file declares or uses."""
        known = list(self.arguments())
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                raise InputError(f"{self.path.name} has no xacro argument {name!r}{near or '.'} {self.declared()}")

    def explain(self, error: Exception) -> NoReturn:
        """Raise the error of an expansion as one of armdyn's, with the arguments that the file takes."""
        for cause in _causes(error):
            if isinstance(cause, FileError):
                raise cause from None
        said = " ".join(f"{type(error).__name__}: {error}".split())
        self.must_know(self.given)
        raise FileError(
            f"{self.path}: xacro cannot expand it: {said}. {self.declared()}; give others with "
            "armdyn.load(..., xacro={'name': 'value'}) (command line: --xacro name=value)"
        ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it was raised from."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        inner = getattr(error, "exc", None)  # of xacro's own exception
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
