"""The reference pages: commands, configuration and the Python API. `tools/generate.py` writes them.

The Python API is read from the source text, because the page needs only signatures and docstrings.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

from typer.main import get_command
from typer.testing import CliRunner

from bridgehead.cli.commands import build_app
from bridgehead.exit_codes import MEANINGS

# `tools/generate.py` replaces this line of each page with one that names the files to edit.
MARK: Final = "<!-- Generated -->"
MODEL: Final = Path(__file__).parents[1] / "cluster_model" / "configs"
BROKER_CONFIGS: Final = MODEL / "broker_configs" / "broker_configs.tsv"
# What users import, in the order of the page.
PUBLIC_MODULES: Final = (
    "bridgehead.admin",
    "bridgehead.cluster",
    "bridgehead.pytest_plugin",
    "bridgehead.testing",
    "bridgehead.policy",
    "bridgehead.authorizer",
)
_COMMANDS_INTRODUCTION: Final = """\
This page has the exit codes, and the usage and purpose of each command. `bridgehead COMMAND --help`
lists the options.

`python -m bridgehead` does the same as `bridgehead`. `bridgehead --install-completion` makes the
shell complete commands and options.

Each JSON document for programs (`--json`, `cluster.json`, `verdicts.json`, `results.json`) has a
`schema_version`. This number increases when a field disappears or changes its meaning. New fields
may appear at any time.

## Exit codes
"""
_CONFIGURATION_INTRODUCTION: Final = """\
This page lists Bridgehead's own properties, Kafka's broker configs and the topic configs. The page
about [policies](policies.md) describes `topic.management.policy.class.name` (KIP-201) and the
properties of the ready-made policies.

You can set properties as follows:

- In a file: `bridgehead up --config FILE`. The file is Kafka's `server.properties`, or a
  `cluster.yaml` with the sections `properties:` and `nodes:`.
- On the command line: `bridgehead up --override [ID:]KEY=VALUE`.
- In containers: with environment variables. The name of a variable is `KAFKA_` or `KAFKA_CFG_`,
  followed by the property's name in capitals, with `_` for each dot.

The prefix `listener.name.<listener>.` sets a property for one listener. It is allowed for the same
Kafka configs as in Kafka. Of Bridgehead's own properties, it is allowed for those that have
`listener` in the column *set for*.

A node does not start if a `bridgehead.*` name is unknown, a value is invalid or a class is missing.
As in Kafka, a node accepts all other unknown names, because plug-ins may read them.

## Most useful

| property | meaning |
|---|---|
| `zookeeper.session.timeout.ms` | how long a dead controller remains the controller, in \
milliseconds; `bridgehead up` sets 6000 |
| `bridgehead.metadata.controller.id` | the controller id in Metadata responses: `actual`, \
`random` (as in KRaft), `self`, or a fixed id |
| `bridgehead.metadata.blocking`, `bridgehead.metadata.reads` | when a write is acknowledged, and \
how recent reads are ([why](adr/0008-read-consistency.md)) |
| `inter.broker.protocol.version` | below 3.4 the broker itself writes configs, quotas, ACLs and \
tokens ([upgrade](upgrade.md)) |
| `topic.management.policy.class.name` | your own topic policy ([policies](policies.md)) |
| `listeners`, `sasl.*`, `ssl.*` | the security protocols (PLAINTEXT, SSL, SASL_PLAINTEXT, \
SASL_SSL) and the SASL mechanisms (PLAIN, SCRAM, OAUTHBEARER) ([security](security.md)) |
| `bridgehead.quirks` | the misbehaviours of a real Kafka that the broker reproduces \
([quirks](quirks.md)) |

## Bridgehead's own

DescribeConfigs does not return these properties.
"""
_BROKER_INTRODUCTION: Final = """\
## Kafka's broker configs

This section has the configs of Kafka 3.9.1 with Kafka's defaults. A broker checks values as Kafka
does. Kafka's documentation has the type, the valid values and the meaning of each config. A broker
accepts all of them, with these exceptions: a `broker.id` below 0, TLS
versions before 1.2, and the settings with which a node does not start according to
[security](security.md). DescribeConfigs returns the configs, on request each with a sentence that
documents it. AlterConfigs changes a config if its update mode allows it and the config is not a
password.

A broker accepts and returns the following configs, among others, but they have no effect:

- most configs of Kerberos, KRaft, transactions, tiered storage, share groups and the consumer
  groups of KIP-848; while a broker migrates to KRaft
  ([`zookeeper.metadata.migration.enable`](kafka/migration.md)), it reads
  `controller.quorum.voters`, `controller.listener.names`, `broker.heartbeat.interval.ms`,
  `broker.session.timeout.ms`, `sasl.mechanism.controller.protocol` and the security of that
  listener,
- metrics reporters, and `client.quota.callback.class`,
- numbers of threads, buffer sizes of sockets, and `queued.max.requests`,
- `auto.leader.rebalance.enable` and `leader.imbalance.*`: preferred leaders are elected only on
  request,
- `controlled.shutdown.*`, `broker.id.generation.enable`, the rates and quotas of replication
  throttles, `log.cleaner.io.*` and `log.flush.*`,
- dynamic changes of listeners and security configs: a broker reads these only from its properties,
- without the data plane, configs about records and groups.

The update mode says where a config can be set. `null` stands for no value; do not write it into a
properties file.
"""
_UPDATE_MODES: Final = {
    "read-only": "only in the properties file",
    "per-broker": "in the file, and dynamically for one broker",
    "cluster-wide": "in the file, and dynamically for one broker or for all brokers",
    "dynamic-only": "only dynamically, not in the file",
}
_TOPIC_INTRODUCTION: Final = """\
## Topic configs

If a topic does not set a config, the config takes the value of its broker config. For some broker
configs that are not set, Kafka reads another one. For example, `segment.ms` takes the value of
`log.roll.ms`, or of `log.roll.hours` if `log.roll.ms` is not set.

The column *default* applies in two cases: none of these configs is set, or the topic config has no
broker config.
"""
_API_INTRODUCTION: Final = """\
Programs may import the names on this page. Everything else is internal and can change in any
release. This page has the arguments, the results and the first sentences. `help()` in Python has
the rest: types of arguments, units, errors, and which errors are definite. For example, after
`import bridgehead.admin`, call `help(bridgehead.admin.AdminClient.create_topics)`.
"""
_MEMBERS_MAX: Final = 20


def commands_page() -> str:
    """Return the page about commands: exit codes, then the usage and purpose of each."""
    page = ["# Commands", "", MARK, "", *_COMMANDS_INTRODUCTION.splitlines(), ""]
    page += ["| code | meaning |", "|---|---|"]
    page += [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    page += ["", "## Every command", "", "| usage | purpose |", "|---|---|"]
    for words in command_names():
        usage, *text = help_of(words).split("\n\n")
        # The first paragraphs of the help, up to the arguments or options.
        described = itertools.takewhile(lambda paragraph: paragraph.startswith("  "), text)
        command = " ".join(usage.removeprefix("Usage: ").split())
        page.append(
            f"| `{_escaped(command)}` | {_escaped(' '.join(' '.join(described).split()))} |"
        )
    return "\n".join([*page, ""])


def help_of(words: list[str]) -> str:
    """Return what `bridgehead WORDS --help` prints on a terminal of 80 columns."""
    arguments = [*words, "--help"]
    environment = {"COLUMNS": "80"}
    result = CliRunner().invoke(build_app(), arguments, prog_name="bridgehead", env=environment)
    return result.stdout.strip()


def command_names(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Yield the words of each command that is not a group; `bridgehead` itself first."""
    command = command or get_command(build_app())
    if not words or not hasattr(command, "commands"):
        yield list(words)
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from command_names(subcommand, (*words, name))


def configuration_page() -> str:
    """Return the page about every property of brokers and topics."""
    bridgehead_rows = _rows(MODEL / "bridgehead_configs.tsv")
    topics = _rows(MODEL / "topic_configs.tsv")
    page = ["# Configuration", "", MARK, "", *_CONFIGURATION_INTRODUCTION.splitlines(), ""]
    page += [
        *_table(bridgehead_rows, tuple(bridgehead_rows[0])),
        "",
        *_BROKER_INTRODUCTION.splitlines(),
    ]
    for mode, meaning in _UPDATE_MODES.items():
        rows = [row for row in _rows(BROKER_CONFIGS) if row["update mode"] == mode]
        lines = [f"{row['name']}={row['default']}" for row in rows]
        page += ["", f"*{mode}*: {meaning}.", "", "```", *lines, "```"]
    page += ["", *_TOPIC_INTRODUCTION.splitlines(), ""]
    page += [*_table(topics, ("name", "default", "broker config")), ""]
    return "\n".join(page)


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file, each by column."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def _table(rows: Iterable[Mapping[str, str]], columns: Sequence[str]) -> Iterator[str]:
    """Yield a Markdown table; names and defaults are code."""
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        cells = (
            f"`{row[column]}`" if column in ("name", "default") and row[column] else row[column]
            for column in columns
        )
        yield f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def python_api_page() -> str:
    """Return the page about what programs import: calls, classes and their first sentences."""
    page = ["# Python API", "", MARK, "", *_API_INTRODUCTION.splitlines()]
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        page += ["", f"## {name}", "", *inspect.cleandoc(inspect.getdoc(module) or "").splitlines()]
        with_calls, others = list[str](), list[str]()
        for node in _public(module):
            text, calls = _described(node), _calls(node, getattr(module, node.name, None))
            if calls:
                with_calls += ["", f"### {node.name}", "", text, "", *calls]
            else:
                others.append(f"- {text}")
        page += with_calls
        if others:
            page += ["", "### Values and functions", ""] if with_calls else [""]
            page += others
    return "\n".join([*page, ""])


def _described(node: Any) -> str:
    """Return the call of a function or of a class's constructor, with its summary."""
    if isinstance(node, ast.FunctionDef):
        return _described_call(node)
    methods = (child for child in node.body if isinstance(child, ast.FunctionDef))
    constructor = next((method for method in methods if method.name == "__init__"), None)
    call = node.name
    if constructor is not None:
        call += _arguments(constructor, is_method=True)
    elif fields := [child for child in node.body if isinstance(child, ast.AnnAssign)]:
        call += f"({', '.join(map(_field, fields))})"
    return f"`{call}`: {_summary(ast.get_docstring(node))}{_members(node)}"


def _field(node: ast.AnnAssign) -> str:
    """Return a field of a dataclass or named tuple as an argument."""
    name = ast.unparse(node.target)
    if node.value is None:
        return name
    return f"{name}={'...' if isinstance(node.value, ast.Call) else ast.unparse(node.value)}"


def _members(node: ast.ClassDef) -> str:
    """Return the names of an enumeration, if they are not too many to read."""
    if not any(ast.unparse(b) in ("IntEnum", "ExtensibleCode", "Flag") for b in node.bases):
        return ""
    names = [ast.unparse(child.targets[0]) for child in node.body if isinstance(child, ast.Assign)]
    return f" {', '.join(f'`{member}`' for member in names)}" if len(names) <= _MEMBERS_MAX else ""


def _calls(node: Any, owner: Any) -> list[str]:
    """Return the public methods and properties of a class as items of a list."""
    written = [
        child
        for child in getattr(node, "body", ())
        if isinstance(child, ast.FunctionDef) and not child.name.startswith("_")
    ]
    return [
        *(f"- {_described_call(method, is_method=True)}" for method in written),
        *_made_methods({method.name for method in written}, owner),
    ]


def _made_methods(written: Set[str], owner: Any) -> Iterator[str]:
    """Yield the methods that a class has by assignment, such as those of the blocking client."""
    for name, method in vars(owner).items() if inspect.isclass(owner) else ():
        made = name not in written and not name.startswith("_") and hasattr(method, "__wrapped__")
        if made and not inspect.iscoroutinefunction(method):  # coroutines: see AdminClient
            call = f"{name}{_plain(inspect.signature(method))}"
            yield f"- `{call}`: {_summary(method.__doc__)}"


def _plain(signature: inspect.Signature) -> str:
    """Return a signature as the source has it, but without `self` and the types of arguments."""
    arguments = (
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    )
    text = str(signature.replace(parameters=list(arguments)))
    for pattern, replacement in (
        (r"\(self, /(?:, )?", "("),
        (r"<(\w+\.\w+): \d+>", r"\1"),  # a flag
        (r"<(\w+): 0>", r"\1(0)"),  # no flag
        (r"=(\w+)\(\w+=.*?\)", r"=\1()"),  # a named tuple of defaults
        (r"=''", '=""'),
        (r"'", ""),
    ):
        text = re.sub(pattern, replacement, text)
    return text


def _public(module: Any) -> Iterator[Any]:
    """Yield the definitions in a module's `__all__`; without it, the public ones in its file."""
    for exported in getattr(module, "__all__", [None]):
        if exported is not None and not _is_definition(getattr(module, exported)):
            continue  # a number or an alias of a type
        source = module if exported is None else sys.modules[_home(module, exported)]
        for node in ast.parse(inspect.getsource(source)).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            if node.name == (exported or node.name) and not node.name.startswith("_"):
                yield node


def _is_definition(value: Any) -> bool:
    return type(value).__name__ != "GenericAlias" and hasattr(value, "__name__")


def _home(module: Any, name: str) -> str:
    return str(getattr(module, name).__module__)


def _described_call(node: ast.FunctionDef, *, is_method: bool = False) -> str:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    fixture = [decorator for decorator in decorators if decorator.startswith("pytest.fixture")]
    is_value = fixture or {"property", "functools.cached_property"} & set(decorators)
    is_method = is_method and "staticmethod" not in decorators
    call = node.name + ("" if is_value else _arguments(node, is_method=is_method))
    if node.returns is not None:
        call += f" -> {ast.unparse(node.returns)}"
    kind = "".join(
        f" ({decorator.removeprefix('pytest.').replace('(', ', ').rstrip(')')})"
        for decorator in fixture
    )
    return f"`{call}`{kind}: {_summary(ast.get_docstring(node))}"


def _arguments(node: ast.FunctionDef, *, is_method: bool) -> str:
    arguments = copy.deepcopy(node.args)
    if is_method:
        del arguments.args[0]  # self or cls
    for argument in (*arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return f"({ast.unparse(arguments)})"


def _summary(docstring: str | None) -> str:
    """Return the first paragraph of a docstring."""
    return " ".join(inspect.cleandoc(docstring or "").partition("\n\n")[0].split())
