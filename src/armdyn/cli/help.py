"""How the command line prints help: commands in groups, options in panels, common ones first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup, TyperOption

from armdyn.cli.common import console, styled
from armdyn.names import meant_keyword

# Options that `--help` only names and `--help-all` explains, by panel, in every command; a command's own `PANELS` come
# first. The others are common.
PANELS = {
    "Part of the robot's file": (
        "base",
        "tip",
        "tool",
        "lock",
        "floating",
        "allow_outside",
        "strict",
        "snap",
        "xacro",
        "package_dirs",
    ),
    "Output": ("as_json", "quiet"),
    "Shell completion": ("install_completion", "show_completion"),
}
COLUMN = 30  # the widest column of options; a longer option has its help on the next line


class HelpfulCommand(TyperCommand):
    """A command that prints its own help, and whose errors are spelled as on the command line."""

    spelling: Mapping[str, str] = {}  # what the library's messages say, and what the command line says instead
    panels: Mapping[str, tuple[str, ...]] = {}  # the names of less common options, by the title of their panel

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, --help-all and --help."""
        params = super().get_params(ctx)
        if not any(parameter.name == "help_all" for parameter in params):
            params.insert(len(params) - 1, HELP_ALL)
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the common options, and the names of the others."""
        formatter.write(command_help(self, ctx, everything=False))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an option under another library's name is named."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # Typer brings its own copy of the class "no such option", or Click's
            typed = getattr(error, "option_name", None)
            if isinstance(typed, str) and hasattr(error, "message"):
                options = {str(p.name): max(p.opts, key=len) for p in self.params if p.param_type_name == "option"}
                if name := meant_keyword(typed.strip("-"), options):
                    vars(error).update(
                        message=f"No such option: {typed}; it is {options[name]} here.", possibilities=None
                    )
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error names options as they are typed."""
        from armdyn.errors import ArmdynError

        try:
            return super().invoke(ctx)
        except ArmdynError as error:
            error.args = (spelled(str(error), self), *error.args[1:])
            raise


class HelpfulGroup(TyperGroup):
    """A group of commands that prints its own help."""

    groups: Mapping[str, tuple[str, ...]] = {}  # the commands in their order, by heading

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does, in groups."""
        formatter.write(group_help(self, ctx))


def _show_everything(ctx: typer.Context, parameter: Any, wanted: bool) -> None:
    if wanted:
        print(command_help(ctx.command, ctx, everything=True), end="")
        raise typer.Exit


HELP_ALL = TyperOption(
    param_decls=["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_everything,
    default=False,
    help="Explain every option.",
)


def spelled(message: str, command: Any) -> str:
    """A message of the library with the options' names as the command line spells them."""
    message = re.sub(r"armdyn\.load\([^()]*\) \(command line: ([^()]*)\)", r"\1", message)  # both are said
    for python, shell in command.spelling.items():
        message = re.sub(rf"(?<!\w){re.escape(python)}(?!\w)", shell, message)
    for parameter in command.params:
        if parameter.param_type_name != "option":
            continue
        option = max(parameter.opts, key=len)
        off = max(parameter.secondary_opts or [""], key=len)
        for name in {parameter.name, option.removeprefix("--").replace("-", "_")}:
            keyword = rf"(?<![\w.:]){name}="
            message = re.sub(rf"{keyword} \((command line: )?{re.escape(option)}\)", option, message)  # both spellings
            message = re.sub(rf"{keyword}True(?!\w)", option, message)
            message = re.sub(rf"{keyword}False(?!\w)", off or f"without {option}", message)
            message = re.sub(rf"{keyword}(['\"])([\w./-]+)\1", rf"{option} \2", message)
            message = re.sub(rf"{keyword}{{(['\"])([\w./-]+)\1: '?([^{{}}']+)'?}}", rf"{option} \2=\3", message)
            message = re.sub(rf"{keyword}(?=[\d+-])", f"{option} ", message)
            message = re.sub(rf"{keyword}(\.\.\.|(?=[\s,;.)]|$))", option, message)
    return message


def command_help(command: Any, ctx: Any, everything: bool) -> str:
    """The help of one command."""
    out = console()
    with out.capture() as capture:
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        words = [argument_name(p) if p.required else f"[{argument_name(p)}]" for p in arguments]
        out.print(styled(("Usage: ", "bold"), " ".join([ctx.command_path, *words, "[OPTIONS]"])), soft_wrap=True)
        out.print()
        out.print(Text(" ".join((command.help or "").split())))
        if command.epilog:
            out.print()
            out.print(Text(command.epilog), soft_wrap=True)
        if arguments:
            _panel(out, "Arguments", [(argument_name(p), p.help or "") for p in arguments])
        panels = options_by_panel(command, ctx)
        common = panels.pop("")
        _panel(out, "Options", [(option_name(p), described(p)) for p in common])
        if everything:
            for title, options in panels.items():
                _panel(out, title, [(option_name(p), described(p)) for p in options])
        elif panels:
            rest = [(title, ", ".join(max(p.opts, key=len) for p in options)) for title, options in panels.items()]
            _panel(out, "More options, explained by --help-all", rest)
        out.print()
    return capture.get()


def group_help(group: Any, ctx: Any) -> str:
    """The help of a group: its commands, in groups."""
    out = console()
    with out.capture() as capture:
        out.print(styled(("Usage: ", "bold"), f"{ctx.command_path} COMMAND …"))
        out.print()
        out.print(Text(group.help or ""))
        groups = group.groups or {"Commands": tuple(group.list_commands(ctx))}
        for title, names in groups.items():
            rows = [(name, first_clause(group.get_command(ctx, name).help or "")) for name in names]
            _panel(out, title, rows, width=12)
        _panel(out, "Options", [(option_name(p), described(p)) for p in group.get_params(ctx)])
        out.print()
        if group.epilog:
            out.print(Text(group.epilog))
    return capture.get()


def options_by_panel(command: Any, ctx: Any) -> dict[str, list[Any]]:
    """The options of a command by the title of their panel; "" has the common ones."""
    titles = PANELS | dict(command.panels)
    where = {name: title for title, names in titles.items() for name in names}
    panels: dict[str, list[Any]] = {title: [] for title in ("", *command.panels, *PANELS)}
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "option" and not parameter.hidden:
            title = getattr(parameter, "rich_help_panel", None) or where.get(parameter.name, "")
            panels.setdefault(title, []).append(parameter)
    if sum(map(len, panels.values())) <= 6:  # a command with few options shows them all
        return {"": [parameter for options in panels.values() for parameter in options]}
    return {title: options for title, options in panels.items() if options or not title}


def argument_name(parameter: Any) -> str:
    """How help names an argument."""
    return str(parameter.metavar or parameter.name.upper()).strip("{}[]")


def option_name(parameter: Any) -> str:
    """An option with its short form and the kind of its value: `-o, --output FILE`; a flag has no value."""
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.is_flag:
        return "/".join([names, *parameter.secondary_opts])
    kinds = {"text": "TEXT", "str": "TEXT", "integer": "N", "int": "N", "float": "NUMBER", "path": "FILE"}
    kind = str(getattr(parameter.type, "name", "")).split(" ")[0].strip("<>")
    metavar = parameter.metavar or ("N" if "range" in kind else kinds.get(kind, "VALUE"))
    return f"{names} {metavar}"


def described(parameter: Any) -> str:
    """The help of an option, with its default where it has one."""
    default = parameter.default
    text = parameter.help or ""
    if callable(default) or parameter.name in ("help", "help_all"):
        return text
    if parameter.is_flag:
        return (
            f"{text} [default: {'on' if default else 'off'}]"
            if parameter.secondary_opts and default is not None
            else text
        )
    return text if default in (None, "", (), []) else f"{text} [default: {default}]"


def first_clause(text: str) -> str:
    """The first clause of a description, for one line of a list."""
    text = re.sub(r"\s*\([^)]*\)", "", " ".join(text.split()))
    return re.split(r"[;:]|\.\s|\.$", text, maxsplit=1)[0].strip()


def _panel(out: Any, title: str, rows: list[tuple[str, str]], width: int | None = None) -> None:
    """A heading and two columns; a name too long for its column stands on a line of its own."""
    out.print()
    out.print(styled((title, "bold")))
    column = width or max((len(name) for name, _ in rows if len(name) <= COLUMN), default=COLUMN)
    for name, text in rows:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=column + 2, no_wrap=True)
        grid.add_column(overflow="fold")
        if len(name) > column:
            out.print(Text(f"  {name}"), soft_wrap=True)
            name = ""
        grid.add_row(Text(f"  {name}"), Text(text))
        out.print(grid)
