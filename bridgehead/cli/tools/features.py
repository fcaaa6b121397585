"""`bridgehead features`: kafka-features.sh describe, upgrade, downgrade and disable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import (
    Option,
    Options,
    Output,
    Tool,
    ToolError,
    UsageFault,
    text,
    texts,
)

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, FeatureMetadata, UpgradeType

_ACTIONS: Final = ("describe", "upgrade", "downgrade", "disable")
_LEVEL_MAX: Final = 32_767
_METADATA_VERSION: Final = "metadata.version"
# The versions of metadata.version in Kafka 3.9; the first one is level 1.
METADATA_VERSIONS: Final = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
    *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1"),
    *("3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1"),
)
_RELEASED: Final = METADATA_VERSIONS[: METADATA_VERSIONS.index("3.9-IV0") + 1]
_SUPPORTED: Final = _RELEASED[_RELEASED.index("3.3-IV0") :]


def check(options: Options) -> None:
    """Raise UsageFault if the action is missing, or if it does not take the given `--metadata`."""
    action = options.text("action")
    if action not in _ACTIONS:
        raise UsageFault(f"Write one of the actions {', '.join(_ACTIONS)}.")
    if options.has("metadata") and action not in ("upgrade", "downgrade"):
        raise UsageFault("kafka-features: error: unrecognized arguments: '--metadata'")


def metadata_level(text: str) -> int:
    """Return the level of a version such as 3.3-IV3; 3.3 and 3.3.2 mean the newest level of 3.3.

    Raises:
        ToolError: Kafka 3.9 has no such version.
    """
    version = ".".join(text.split(".")[:2])
    names = [release for release in _RELEASED if release.partition("-")[0] == version]
    name = names[-1] if names else version
    if name not in METADATA_VERSIONS:
        raise ToolError(
            f"Unsupported metadata.version {text}. Supported metadata.version are "
            f"{', '.join(_SUPPORTED)}"
        )
    return METADATA_VERSIONS.index(name) + 1


def parse_levels(texts: list[str], action: str, metadata: str | None = None) -> dict[str, int]:
    """Return the level of each `feature=level`; for disable, 0 for each `feature`.

    `metadata` is the argument of --metadata, such as 3.3-IV3.

    Raises:
        ToolError: a text is malformed, or a feature is named twice.
    """
    levels = {} if metadata is None else {_METADATA_VERSION: metadata_level(metadata)}
    for word in texts:
        name, equals, level = (part.strip() for part in word.partition("="))
        if action == "disable":
            name, level = word, "0"
        elif not equals:
            raise ToolError(f"Can't parse feature=level string {word}: equals sign not found.")
        if not level.removeprefix("-").isdigit() or abs(int(level)) > _LEVEL_MAX:
            raise ToolError(
                f"Can't parse feature=level string {word}: unable to parse {level} as a short."
            )
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        levels[name] = int(level)
    if not levels:
        raise ToolError(f"You must specify at least one feature to {action}")
    return levels


def feature_lines(metadata: FeatureMetadata) -> list[str]:
    """Return a line per supported feature."""
    lines = []
    for name, (least, most) in sorted(metadata.supported.items()):
        _, level = metadata.finalized.get(name, (0, 0))
        epoch = "-" if metadata.epoch is None else metadata.epoch
        lines.append(
            f"Feature: {name}\tSupportedMinVersion: {least}\tSupportedMaxVersion: {most}\t"
            f"FinalizedVersionLevel: {level}\tEpoch: {epoch}"
        )
    return lines


def update_line(action: str, name: str, level: int, error: str | None, *, dry: bool) -> str:
    """Return the line of one feature."""
    if error is not None:
        verb = "Can not" if dry else "Could not"
        what = f"disable {name}" if action == "disable" else f"{action} {name} to {level}"
        return f"{verb} {what}. {error}"
    done = "can be" if dry else "was"
    return f"{name} {done} " + ("disabled." if action == "disable" else f"{action}d to {level}.")


def _upgrade_type(action: str, options: Options) -> UpgradeType:
    from bridgehead.admin import UpgradeType

    if action == "upgrade":
        return UpgradeType.UPGRADE
    return UpgradeType.UNSAFE_DOWNGRADE if options.has("unsafe") else UpgradeType.SAFE_DOWNGRADE


def _run(admin: AdminClient, options: Options, out: Output) -> None:
    from bridgehead.admin import FeatureUpdate

    action = options.needed("action")
    if action == "describe":
        metadata = admin.describe_features()
        out.result(**metadata._asdict())
        for line in feature_lines(metadata):
            out.line(line)
        return
    levels = parse_levels(options.texts("feature"), action, options.text("metadata"))
    dry, kind = options.has("dry-run"), _upgrade_type(action, options)
    updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
    errors = admin.update_features(updates, dry)
    failed = 0
    out.result(features={})
    for name in sorted(errors):
        error = errors[name]
        reason = None if error is None else str(error)
        failed += reason is not None
        out.line(update_line(action, name, levels[name], reason, dry=dry))
        out.document["features"][name] = reason
    if failed:
        raise ToolError(f"{failed} out of {len(levels)} operation(s) failed.")


TOOL: Final = Tool(
    name="features",
    help="Describe and change feature levels.\n\nWorks like kafka-features.sh.",
    options=(
        texts("feature", "NAME=LEVEL", "A feature and its level; disable takes no level."),
        text(
            "metadata",
            "VERSION",
            "For upgrade and downgrade: the metadata.version, such as 3.3-IV3.",
        ),
        Option("dry-run", "Check the change without applying it."),
        Option("unsafe", "Downgrade or disable even if metadata is lost."),
    ),
    run=_run,
    check=check,
    actions=_ACTIONS,
)
