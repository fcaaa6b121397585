"""`bridgehead features`: kafka-features.sh describe, upgrade, downgrade and disable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bridgehead.cli.tools.tool import Option, Options, Output, Tool, ToolError, UsageFault, texts

if TYPE_CHECKING:
    from bridgehead.admin import AdminClient, FeatureMetadata, UpgradeType

_ACTIONS: Final = ("describe", "upgrade", "downgrade", "disable")
_LEVEL_MAX: Final = 32_767


def check(options: Options) -> None:
    """Raise UsageFault without an action."""
    if options.text("action") not in _ACTIONS:
        raise UsageFault(f"Write one of the actions {', '.join(_ACTIONS)}.")


def parse_levels(texts: list[str], action: str) -> dict[str, int]:
    """Return the level of each `feature=level`; for disable, 0 for each `feature`.

    Raises:
        ToolError: a text is malformed, or a feature is named twice.
    """
    levels: dict[str, int] = {}
    for each in texts:
        name, equals, level = (part.strip() for part in each.partition("="))
        if action == "disable":
            name, level = each, "0"
        elif not equals:
            raise ToolError(f"Can't parse feature=level string {each}: equals sign not found.")
        if not level.removeprefix("-").isdigit() or abs(int(level)) > _LEVEL_MAX:
            raise ToolError(
                f"Can't parse feature=level string {each}: unable to parse {level} as a short."
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
    levels = parse_levels(options.texts("feature"), action)
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
    help="Describe and change feature levels. As kafka-features.sh.",
    options=(
        texts("feature", "NAME=LEVEL", "A feature and its level; disable takes no level."),
        Option("dry-run", "Check the change without applying it."),
        Option("unsafe", "Downgrade or disable even if metadata is lost."),
    ),
    run=_run,
    check=check,
    actions=_ACTIONS,
)
