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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command
from typer.testing import CliRunner

from bridgehead.cli.commands import build_app
from bridgehead.exit_codes import MEANINGS

# `tools/generate.py` replaces this line of each page with one that names the files to edit.
MARK: Final = "<!-- Generated -->"
MODEL: Final = Path(__file__).parents[1] / "cluster_model" / "configs"
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

This table has the configs of Kafka 3.9.1, with Kafka's defaults and checks. Kafka's documentation
has their meaning. A broker accepts all of them, with these exceptions: a `broker.id` below 0, TLS
versions before 1.2, and the settings with which a node does not start according to
[security](security.md). DescribeConfigs returns the configs, on request each with a sentence that
documents it. AlterConfigs changes a config if its update mode allows it and the config is not a
password.

A broker accepts and returns the following configs, among others, but they have no effect:

- most configs of Kerberos, KRaft, transactions, tiered storage, share groups and the consumer
  groups of KIP-848,
- metrics reporters, and `client.quota.callback.class`,
- numbers of threads, buffer sizes of sockets, and `queued.max.requests`,
- `auto.leader.rebalance.enable` and `leader.imbalance.*`: preferred leaders are elected only on
  request,
- `controlled.shutdown.*`, `broker.id.generation.enable`, the rates and quotas of replication
  throttles, `log.cleaner.io.*` and `log.flush.*`,
- dynamic changes of listeners and security configs: a broker reads these only from its properties,
- without the data plane, configs about records and groups.

The table shows a null default as `null`. The update mode says where a config can be set:

- *read-only*: only in the properties file.
- *per-broker*: in the file, and dynamically for one broker.
- *cluster-wide*: in the file, and dynamically for one broker or for all brokers.
- *dynamic-only*: only dynamically, not in the file.
"""
_TOPIC_INTRODUCTION: Final = """\
## Topic configs

If a topic does not set a config, the config takes the value of its broker config. If the broker
config is not set either, its row in the table above may name another broker config after *if
unset*. The topic config then takes the value of that other config. For example, `segment.ms` takes
the value of `log.roll.ms`, or of `log.roll.hours` if `log.roll.ms` is not set.

The column *default* applies in two cases: none of these configs is set, or the topic config has no
broker config.
"""
_API_INTRODUCTION: Final = """\
Programs may import the names on this page. Everything else is internal and can change in any
release. This page has signatures and first sentences. `help()` in Python has the rest: units,
errors, and which errors are definite. For example, after `import bridgehead.admin`, call
`help(bridgehead.admin.AdminClient.create_topics)`.
"""
_WIDTH_MAX: Final = 80


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
    for name, each in getattr(command, "commands", {}).items():
        yield from command_names(each, (*words, name))


def configuration_page() -> str:
    """Return the page about every property of brokers and topics."""
    page = ["# Configuration", "", MARK, ""]
    own, kafkas = frozenset[str](), frozenset({"documentation"})
    for introduction, table, left_out in (
        (_CONFIGURATION_INTRODUCTION, "bridgehead_configs.tsv", own),
        (_BROKER_INTRODUCTION, "broker_configs/broker_configs.tsv", kafkas),
        (_TOPIC_INTRODUCTION, "topic_configs.tsv", kafkas),
    ):
        page += [*introduction.splitlines(), "", *_table(MODEL / table, left_out), ""]
    return "\n".join(page)


def _table(path: Path, left_out: frozenset[str]) -> Iterator[str]:
    """Yield columns of a TSV file as a Markdown table; names and defaults are code."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    columns = [column for column in header.split("\t") if column not in left_out]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for line in lines:
        row = dict(zip(header.split("\t"), line.split("\t"), strict=True))
        for column in ("name", "default"):
            row[column] = f"`{row[column]}`" if row[column] else ""
        yield f"| {' | '.join(_escaped(row[column]) for column in columns)} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def python_api_page() -> str:
    """Return the page about what programs import: signatures and docstrings."""
    page = ["# Python API", "", MARK, "", *_API_INTRODUCTION.splitlines()]
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        page += ["", f"## {name}", "", *inspect.cleandoc(inspect.getdoc(module) or "").splitlines()]
        for node in _public(module):
            page += _documented(node)
            page += _made_methods(node, getattr(module, node.name, None))
    return "\n".join([*page, ""])


def _made_methods(node: Any, owner: Any) -> Iterator[str]:
    """Yield the methods that a class has by assignment, such as those of the blocking client."""
    written = {each.name for each in getattr(node, "body", ()) if isinstance(each, ast.FunctionDef)}
    for name, method in vars(owner).items() if inspect.isclass(owner) else ():
        made = name not in written and not name.startswith("_") and hasattr(method, "__wrapped__")
        if made and not inspect.iscoroutinefunction(method):  # coroutines: see AdminClient
            heading = f"{node.name}.{name}{_plain(str(inspect.signature(method)))}"
            yield from ("", f"#### `{heading}`", "", *_summary(method.__doc__))


def _plain(signature: str) -> str:
    """Return `inspect`'s signature as the source has it, but without `self`."""
    for pattern, text in (
        (r"\(self, /(?:, )?", "("),
        (r"<(\w+\.\w+): \d+>", r"\1"),  # a flag
        (r"<(\w+): 0>", r"\1(0)"),  # no flag
        (r"= (\w+)\(\w+=.*?\)", r"= \1()"),  # a named tuple of defaults
        (r"= ''", '= ""'),
        (r"'", ""),
    ):
        signature = re.sub(pattern, text, signature)
    return signature


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


def _documented(node: Any, owner: str = "") -> Iterator[str]:
    """Yield a class with its public methods, or a function."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        yield from ("", f"### {node.name}" + (f"({bases})" if bases else ""), "")
        yield from _summary(ast.get_docstring(node))
        yield from _fields(node)
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and (
                not each.name.startswith("_") or each.name == "__init__"
            ):
                yield from _documented(each, node.name)
        return
    yield from ("", *_signature(node, owner))
    if docstring := ast.get_docstring(node):
        yield from ("", *_summary(docstring))


def _signature(node: ast.FunctionDef, owner: str) -> Iterator[str]:
    """Yield a heading for a method or function; a block of code for a constructor."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    arguments = copy.deepcopy(node.args)
    if owner and "staticmethod" not in decorators:
        del arguments.args[0]  # self or cls
    text = f"({ast.unparse(arguments)})"
    if node.name == "__init__":
        yield from ("```", *_wrapped(owner + text), "```")
        return
    fixture = [each for each in decorators if each.startswith("pytest.fixture")]
    if fixture or {"property", "functools.cached_property"} & set(decorators):
        text = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    elif node.returns is not None:
        text += f" -> {ast.unparse(node.returns)}"
    kind = (
        f" ({fixture[0].removeprefix('pytest.').replace('(', ', ').rstrip(')')})" if fixture else ""
    )
    yield f"#### `{owner + '.' if owner else ''}{node.name}{text}`{kind}"


def _wrapped(call: str) -> list[str]:
    """Break a long call after each argument."""
    if len(call) <= _WIDTH_MAX:
        return [call]
    name, _, arguments = call[:-1].partition("(")
    parts = re.split(r", (?=\*|\w+(?::|=|$))", arguments)
    return [f"{name}(", *(f"    {part}," for part in parts), ")"]


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a dataclass or named tuple, or the names of an enumeration."""
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    if fields:
        yield from ("", "```", *(ast.unparse(each) for each in fields), "```")
    if any(ast.unparse(base) in ("IntEnum", "Flag") for base in node.bases):
        members = [
            ast.unparse(each.targets[0]) for each in node.body if isinstance(each, ast.Assign)
        ]
        yield from ("", ", ".join(f"`{each}`" for each in members))


def _summary(text: str | None) -> Iterator[str]:
    """Yield the first paragraph of a docstring."""
    for line in inspect.cleandoc(text or "").splitlines():
        if not line:
            return
        yield line
