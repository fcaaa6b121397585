"""A hook of MkDocs (mkdocs.yml): fills the site with what is not below `docs/`.

- Pages of the repository's root, such as ARCHITECTURE.md, appear under `project/`.
- `reference/python.md` is generated: mkdocstrings reads the docstrings of the public modules.
- Links to pages lead to the page of the site. Links to source code become plain text, because the
  site does not contain the code.
- A page opens without the search index, which is heavier than any page, and without the pictures
  that a reader has not scrolled to.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

ROOT: Final = Path(__file__).parents[1]
# The site would list no README among the pages of its section.
OUTSIDE: Final = {
    "ARCHITECTURE.md": "project/ARCHITECTURE.md",
    "CONTRIBUTING.md": "project/CONTRIBUTING.md",
    "CHANGELOG.md": "project/CHANGELOG.md",
    "SECURITY.md": "project/SECURITY.md",
    "examples/README.md": "project/examples/projects.md",
    "examples/not_controller.md": "project/examples/not_controller.md",
}
"""The site's name of each page from outside of `docs/`."""
_SECTIONS: Final = {"How Kafka behaves": "kafka", "Decisions": "adr"}
_PYTHON_PAGE: Final = "reference/python.md"
_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
# The theme requests the index when a page opens; it says "Initializing search" until it has it.
_SEARCH_ON_USE: Final = """<script>
{
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...more) {
    this.waits = String(url).endsWith("/search_index.json");
    return open.call(this, method, url, ...more);
  };
  XMLHttpRequest.prototype.send = function (body) {
    const isUsed = () => document.activeElement?.name === "query" || location.search.includes("q=");
    if (!this.waits || isUsed()) return send.call(this, body);
    const begin = () => {
      if (!isUsed()) return;
      removeEventListener("focusin", begin);
      send.call(this, body);
    };
    addEventListener("focusin", begin);
  };
}
</script>
"""
_FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Fill the sections of the navigation that list a folder."""
    for tab in config.nav:
        for entries in tab.values():
            for entry in entries:
                if isinstance(entry, dict):
                    (title,) = entry
                    if folder := _SECTIONS.get(title):
                        names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.md"))
                        names.sort(key=lambda name: name != "README.md")
                        entry[title] = [f"{folder}/{name}" for name in names]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages from outside `docs/`, and the page that mkdocstrings fills."""
    for name, uri in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=text))
    files.append(File.generated(config, _PYTHON_PAGE, content=_python_page()))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Any, **_: Any) -> str:
    """Let the links of a page lead to pages of the site."""
    here = page.file.src_uri
    if here == _PYTHON_PAGE:
        return markdown
    source = next((name for name, uri in OUTSIDE.items() if uri == here), f"docs/{here}")
    pages = {file.src_uri for file in files}

    def rewritten(link: re.Match[str]) -> str:
        text, target = link.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return link.group()
        path, _, anchor = target.partition("#")
        uri = page_of(source, path)
        if uri not in pages:
            return text
        relative = posixpath.relpath(uri, posixpath.dirname(here) or ".")
        # The start page replaces README, and has other sections.
        return f"[{text}]({relative}{f'#{anchor}' if anchor and uri != 'index.md' else ''})"

    return _outside_of_code(markdown, rewritten)


def on_page_content(html: str, **_: Any) -> str:
    """Let the browser fetch pictures when they come near."""
    return html.replace("<img ", '<img loading="lazy" ')


def on_post_page(output: str, **_: Any) -> str:
    """Let search fetch its index when it is used."""
    return output.replace("</head>", f"{_SEARCH_ON_USE}</head>", 1)


def page_of(source: str, path: str) -> str:
    """Return the site's name of a file, which a page of the repository names by a relative path."""
    named = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if named in OUTSIDE:
        return OUTSIDE[named]
    if named == "README.md":
        return "index.md"
    if named in _SECTIONS.values() or named.removeprefix("docs/") in _SECTIONS.values():
        return f"{named.removeprefix('docs/')}/README.md"
    return named.removeprefix("docs/") if named.startswith("docs/") else named


def _outside_of_code(markdown: str, rewritten: Any) -> str:
    parts, end = list[str](), 0
    for fenced in _FENCED.finditer(markdown):
        parts += [_LINK.sub(rewritten, markdown[end : fenced.start()]), fenced.group()]
        end = fenced.end()
    return "".join([*parts, _LINK.sub(rewritten, markdown[end:])])


def _python_page() -> str:
    overview = (ROOT / "docs/python-api.md").read_text(encoding="utf-8")
    modules = re.findall(r"^## (bridgehead\.\S+)$", overview, re.MULTILINE)
    lines = [
        "# Python docstrings",
        "Types, units and errors of [the Python API](../python-api.md).",
    ]
    return "\n\n".join([*lines, *(f"## {module}\n\n::: {module}" for module in modules)])
