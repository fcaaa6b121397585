"""Writes a run as one file: the page, its scripts and the evidence. It needs no server."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

import orjson

from bridgehead.cluster.errors import ClusterError
from bridgehead.ui import model
from bridgehead.ui.captions import Captions
from bridgehead.ui.reading import RunReader, find_run, read_run
from bridgehead.ui.verdicts import judged

STATIC: Final = Path(__file__).parent / "static"
# In an order in which no module comes before one that it imports.
MODULES: Final = (
    *("dom", "evidence", "source", "inspector", "topology", "sequence", "timeline"),
    *("metadata", "verdicts", "break_it", "main"),
)
# An exported page has every row, but raw events and captions only of the last ones.
RAW_EVENTS_MAX: Final = 200_000
_BLOCK: Final = 500
_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:function|class|const) (\w+)", re.MULTILINE)


def script() -> str:
    """Return all modules as one script: each is a function that returns what it exports."""
    parts = []
    for name in MODULES:
        code = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        exported = ", ".join(_EXPORT.findall(code))
        code = _EXPORT.sub(lambda match: match[0].removeprefix("export "), code)
        code = _IMPORT.sub(r"const {\1} = module_\2;", code)
        parts.append(f"const module_{name} = (() => {{\n{code}\nreturn {{ {exported} }};\n}})();\n")
    return "".join(parts)


def write_page(folder: Path, file: Path) -> None:
    """Export the last run of a folder, with its verdicts, to a file.

    Raises:
        ClusterError: the folder has no run, or the file cannot be written.
    """
    reader = read_run(find_run(folder))
    try:
        page = exported_page(reader, judged(reader, live=False), str(folder))
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"{file} cannot be written: {error.strerror}.") from None
    finally:
        reader.close()


def exported_page(reader: RunReader, verdicts: Any, name: str) -> str:
    """Return the page. `name` is the run's folder, for the commands that the page shows."""
    code = script()
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    count = len(reader.collector.rows)
    first_raw = max(count - RAW_EVENTS_MAX, 0) // _BLOCK * _BLOCK
    about = {
        **model.about(reader),
        "live": False,
        "folder": name,
        "block": _BLOCK,
        "cut": f"Raw events and captions begin at event {first_raw + 1:,}." if first_raw else "",
    }
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(code)}'; "
        f"style-src 'sha256-{_digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    data = [
        _data("about", _text(about)),
        _data("rows", _compressed(model.Batches(reader).pack(0, count))),
        _data("operations", _compressed(orjson.dumps(_operations(reader)))),
        _data("verdicts", _compressed(orjson.dumps(verdicts))),
        *(
            f'<script type="text/plain" class="details">{block}</script>'
            for block in _blocks(reader, first_raw)
        ),
    ]
    charset = '<meta charset="utf-8">'
    meta = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
    page = page.replace(charset, f"{charset}\n{meta}")
    page = page.replace('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>")
    page = page.replace('<script type="module" src="main.js"></script>\n', "")
    end = "\n".join([*data, f'<script type="module">{code}</script>'])
    return page.replace("</body>", f"{end}\n</body>")


def _operations(reader: RunReader) -> dict[str, Any]:
    return {"first": model.first_znodes(reader), "operations": list(model.operations(reader, 0))}


def _blocks(reader: RunReader, first_raw: int) -> Iterator[str]:
    captions = Captions(reader.collector.rows)
    for start in range(0, len(reader.collector.rows), _BLOCK):
        stop = min(start + _BLOCK, len(reader.collector.rows))
        chosen = range(start, stop) if start >= first_raw else ()
        yield _compressed(
            orjson.dumps([model.detail(reader, captions, position) for position in chosen])
        )


def _data(name: str, content: str) -> str:
    return f'<script type="text/plain" id="{name}">{content}</script>'


def _text(document: Any) -> str:
    text = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode()
    return text.replace("<", "\\u003c")


def _compressed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
