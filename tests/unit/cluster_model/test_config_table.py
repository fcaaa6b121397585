"""The reader of config tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.configs.table import read_config_table
from cluster_model.configs.types import ConfigException, ConfigKey

HEADER = "name\ttype\tdefault\tvalid values\tnote\tdocumentation"
ROW = "log.roll.ms\tlong\tnull\t[1,...]\tx\tMaximum age."


def read(path: Path, *lines: str) -> list[ConfigKey]:
    table = path / "some_configs.tsv"
    table.write_text("\n".join(lines) + "\n")
    return list(read_config_table(table, "note", lambda fields, _: ConfigKey(*fields)).values())


def test_a_row_becomes_a_key(tmp_path: Path) -> None:
    (key,) = read(tmp_path, HEADER, ROW)
    assert (key.name, key.type.name, key.default) == ("log.roll.ms", "LONG", None)
    assert key.parse("7") == 7
    with pytest.raises(ConfigException, match="at least 1"):
        key.parse("0")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((ROW,), "the columns must be"),
        ((HEADER, ROW, ROW), "line 3: .*log.roll.ms is defined twice"),
        ((HEADER, "log.roll.ms\tlong"), "line 2: .*not enough values"),
        ((HEADER, ROW.replace("long", "float")), "line 2: .*FLOAT"),
        ((HEADER, ROW.replace("[1,...]", "positive")), "line 2: .*positive"),
        ((HEADER, ROW.replace("null", "0")), "line 2: .*Value must be at least 1"),
    ],
)
def test_a_malformed_table_is_rejected_with_its_line(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=f"some_configs.tsv.*{message}"):
        read(tmp_path, *lines)
