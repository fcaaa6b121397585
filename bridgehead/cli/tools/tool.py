"""The common parts of Kafka's tools: options, usage errors, output, exit codes.

The options of a tool are a table. `as_command` turns it into a function for typer, so that help and
completion work as in the other commands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from typer.core import TyperCommand

from bridgehead.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    JsonOption,
    print_json,
    say,
    say_on_stderr,
)
from bridgehead.exit_codes import ExitCode

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient

_ARGUMENTS: Final = "bridgehead.cli.tools.arguments"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a tool, by Kafka's name without the dashes.

    An option of the kind `texts` may be repeated. An option of the kind `optional` may have no
    text; its metavar is in brackets.
    """

    name: str
    help: str
    metavar: str = ""
    kind: Literal["flag", "text", "number", "texts", "optional"] = "flag"


def text(name: str, metavar: str, help: str) -> Option:
    """Return an option with a text."""
    return Option(name, help, metavar, "text")


def texts(name: str, metavar: str, help: str) -> Option:
    """Return an option with a text, which may be repeated."""
    return Option(name, help, metavar, "texts")


def number(name: str, metavar: str, help: str) -> Option:
    """Return an option with an integer."""
    return Option(name, help, metavar, "number")


def optional(name: str, metavar: str, help: str) -> Option:
    """Return an option whose text may be omitted; then the text is empty."""
    return Option(name, help, metavar, "optional")


class Options:
    """The options of one command line. An option that was not given is None, False or []."""

    def __init__(self, values: Mapping[str, Any], arguments: Sequence[str] = ()) -> None:
        self._values = values
        self.arguments = arguments  # in the given order, which matters to some tools

    def has(self, name: str) -> bool:
        """Return whether the option was given."""
        value = self._values.get(name)
        return value is not None and value is not False and value != []

    def used(self, names: Collection[str]) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name in names if self.has(name)]

    def text(self, name: str) -> str | None:
        """Return an option's text."""
        value: str | None = self._values.get(name)
        return value

    def needed(self, name: str) -> str:
        """Return the text of an option; the caller knows that the option was given."""
        return str(self._values[name])

    def texts(self, name: str) -> list[str]:
        """Return the texts of an option that may be repeated."""
        return list(self._values.get(name) or [])

    def number(self, name: str) -> int | None:
        """Return an option's integer."""
        value: int | None = self._values.get(name)
        return value


class ToolError(Exception):
    """A tool has failed; the text is usually what Kafka's tool prints.

    If `terse`, the text is printed alone, not inside the line `Tool.failure`.
    """

    def __init__(self, text: str, *, terse: bool = False) -> None:
        super().__init__(text)
        self.terse = terse


class UsageFault(Exception):
    """The options do not fit together; usually, Kafka's tool prints this text before its help."""


class Output:
    """Prints lines for people, or collects one JSON document."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.document: dict[str, Any] = {}

    def line(self, text: str) -> None:
        """Print one line, unless the output is JSON."""
        if not self.as_json:
            say(text)

    def note(self, text: str) -> None:
        """Print one line on standard error, unless the output is JSON."""
        if not self.as_json:
            say_on_stderr(text)

    def result(self, **fields: Any) -> None:
        """Add fields to the JSON document."""
        self.document.update(fields)

    def fail(self, reason: Exception, line: str, *, on_stdout: bool) -> None:
        """Print the line of a failed command; with JSON, print the document and the reason."""
        if self.as_json:
            print_json({**self.document, "error": str(reason)})
        elif on_stdout:
            say(line)
        else:
            say_on_stderr(line)

    def close(self) -> None:
        """Print the document, if the output is JSON."""
        if self.as_json:
            print_json({**self.document, "error": None})


Run = Callable[["AdminClient", Options, Output], None]


@dataclass(frozen=True, slots=True)
class Tool:
    """A command with the name of Kafka's tool, without `kafka-`.

    `check` raises UsageFault. `run` raises AdminError and ToolError. `failure` is the line that
    Kafka's tool prints after such an error. Its placeholder is {error}, the text of the error, or
    {java}, the name of Kafka's exception class followed by that text.
    """

    name: str
    help: str
    options: tuple[Option, ...]
    run: Run
    check: Callable[[Options], None]
    failure: str = "{error}"
    failure_on_stdout: bool = False
    config_option: str = "command-config"
    actions: tuple[str, ...] = ()  # the words that can follow the name, if the tool has any
    defaults: Mapping[str, str] = field(default_factory=dict)  # defaults of the client's properties


class ToolCommand(TyperCommand):
    """A command whose usage errors have the exit code of Kafka's tools, 1."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the arguments in their order, and parse them."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, with_texts(args, self._optional()))
        except typer.Exit:
            raise
        except Exception as error:
            if not hasattr(error, "format_message"):  # every usage error has this method
                raise
            _explain(str(error.format_message()), str(self.name))
            raise typer.Exit(ExitCode.FAILED) from None

    def _optional(self) -> set[str]:
        return {
            name
            for parameter in self.params
            if str(parameter.metavar or "").startswith("[")
            for name in parameter.opts
        }


def with_texts(arguments: Sequence[str], names: Collection[str]) -> list[str]:
    """Join each option in `names` with the text after it: `NAME=TEXT`, or `NAME=` without a text.

    >>> with_texts(["--list", "--state", "--type", "Classic"], {"--state", "--type"})
    ['--list', '--state=', '--type=Classic']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in {f"{name}=" for name in names} and argument[:1] != "-":
            joined[-1] += argument
        else:
            joined.append(f"{argument}=" if argument in names else argument)
    return joined


def _explain(sentence: str, tool: str) -> None:
    option = sentence.partition("No such option: --")[2].partition(" ")[0]
    say_on_stderr(f"{option} is not a recognized option" if option else sentence)
    say_on_stderr(f"`bridgehead {tool} --help` lists the options.")


def as_command(tool: Tool) -> Callable[..., None]:
    """Return the function of a command for typer."""

    def command(ctx: typer.Context, **values: Any) -> None:
        run_tool(tool, values, ctx.meta.get(_ARGUMENTS, ()))

    parameters = [inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)]
    if tool.actions:
        words = Annotated[
            str | None,
            typer.Argument(metavar="|".join(tool.actions), show_default=False, help="The action."),
        ]
        parameters.append(inspect.Parameter("action", _KEYWORD, annotation=words, default=None))
    for option in (*_connection(tool), *tool.options):
        parameters.append(_parameter(option))
    for name, kind, default in (
        ("data_dir", DataDirOption, DEFAULT_DATA_DIR),
        ("json_output", JsonOption, False),
    ):
        parameters.append(inspect.Parameter(name, _KEYWORD, annotation=kind, default=default))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = tool.help
    return command


_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY


def _connection(tool: Tool) -> tuple[Option, ...]:
    return (
        text(
            "bootstrap-server",
            "HOST:PORT[,...]",
            "Brokers to connect to; default: the running cluster of --data-dir.",
        ),
        text(tool.config_option, "FILE", "Kafka's client properties, such as a login."),
    )


def _variable(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def _parameter(option: Option) -> inspect.Parameter:
    described = typer.Option(
        f"--{option.name}",
        metavar=option.metavar or None,
        help=option.help,
        show_default=False,
    )
    types: dict[str, tuple[Any, Any]] = {
        "flag": (bool, False),
        "text": (str | None, None),
        "optional": (str | None, None),
        "number": (int | None, None),
        "texts": (list[str] | None, None),
    }
    kind, default = types[option.kind]
    return inspect.Parameter(
        _variable(option.name), _KEYWORD, annotation=Annotated[kind, described], default=default
    )


def run_tool(tool: Tool, values: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Check the options, run the tool and print the result.

    Raises:
        typer.Exit: the tool failed; its message was printed.
    """
    named = {option.name: values[_variable(option.name)] for option in tool.options}
    options = Options({**named, "action": values.get("action")}, arguments)
    out = Output(as_json=values["json_output"])
    try:
        tool.check(options)
        _run_connected(tool, values, options, out)
    except UsageFault as fault:
        if out.as_json:
            out.fail(fault, str(fault), on_stdout=True)
        else:
            _explain(str(fault), tool.name)
        raise typer.Exit(ExitCode.FAILED) from None
    except ToolError as error:
        failure = "{error}" if error.terse else tool.failure
        line = failure.format(error=error, java=error)
        out.fail(error, line, on_stdout=tool.failure_on_stdout)
        raise typer.Exit(ExitCode.FAILED) from None
    out.close()


def _run_connected(tool: Tool, values: Mapping[str, Any], options: Options, out: Output) -> None:
    from bridgehead.admin import AdminError
    from bridgehead.cli.tools.connection import connect, java_text

    try:
        with connect(
            values["bootstrap_server"],
            values[_variable(tool.config_option)],
            values["data_dir"],
            tool.defaults,
        ) as admin:
            tool.run(admin, options, out)
    except AdminError as error:
        line = tool.failure.format(error=error, java=java_text(error))
        out.fail(error, line, on_stdout=tool.failure_on_stdout)
        raise typer.Exit(ExitCode.FAILED) from None


def read_text(path: str) -> str:
    """Return the contents of a file that an option names.

    Raises:
        ToolError: the file cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ToolError(f"{path} cannot be read ({reason}): check the path.") from None


def need(options: Options, *names: str) -> None:
    """Raise UsageFault if an option is missing."""
    for name in names:
        if not options.has(name):
            raise UsageFault(f'Missing required argument "[{name}]"')


def forbid(options: Options, used: str, *others: str) -> None:
    """Raise UsageFault if one of `others` is given together with `used`."""
    if options.has(used):
        for other in options.used(others):
            raise UsageFault(f'Option "[{used}]" can\'t be used with option "[{other}]"')
