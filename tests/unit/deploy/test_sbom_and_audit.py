"""The bill of materials of an image, and the audit of the lock files."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from deploy.audit import Findings, audit, report
from deploy.sbom import bill

ROOT = Path(__file__).parents[3]
SITE = "opt/bridgehead/lib/python3.11/site-packages"
STATUS = (
    "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9+deb12u8\n\n"
    "Package: gone\nStatus: deinstall ok config-files\nVersion: 1.0\n\n"
)


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_jar(root: Path, path: str, *poms: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for number, pom in enumerate(poms):
            archive.writestr(f"META-INF/maven/g/{number}/pom.properties", pom)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    write(tmp_path, "var/lib/dpkg/status", STATUS)
    write(tmp_path, f"{SITE}/grpcio-1.85.1.dist-info/METADATA", "Name: grpcio\nVersion: 1.85.1\n")
    write(tmp_path, f"{SITE}/x.dist-info/METADATA", "Name: Typing_Extensions\nVersion: 4.16.0\n")
    write(tmp_path, "opt/java/release", 'IMPLEMENTOR="x"\nJAVA_VERSION="25.0.2"\n')
    pom = "groupId=org.apache.zookeeper\nartifactId=zookeeper\nversion=3.9.5\n"
    write_jar(tmp_path, "opt/zookeeper/zookeeper-3.9.5.jar", pom)
    write_jar(tmp_path, "opt/zookeeper/shaded-util-1.2.jar", pom, pom.replace("3.9.5", "1"))
    write_jar(tmp_path, f"{SITE}/pyspark/jars/plain-name-4.0.jar")
    return tmp_path


def test_every_kind_of_package_is_in_the_bill(image: Path) -> None:
    document: Any = bill(image)
    assert [component["purl"] for component in document["components"]] == [
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u8",
        "pkg:generic/openjdk@25.0.2",
        "pkg:generic/plain-name@4.0",
        "pkg:generic/shaded-util@1.2",
        "pkg:maven/org.apache.zookeeper/zookeeper@3.9.5",
        "pkg:pypi/grpcio@1.85.1",
        "pkg:pypi/typing-extensions@4.16.0",
    ]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")


def test_the_same_image_has_the_same_bill(image: Path) -> None:
    first = json.dumps(bill(image))
    assert json.dumps(bill(image)) == first
    write(image, f"{SITE}/new.dist-info/METADATA", "Name: new\nVersion: 1\n")
    assert json.loads(first)["serialNumber"] != bill(image)["serialNumber"]


def test_every_image_has_a_bill() -> None:
    """An image writes it, or is built on a stage that does."""
    stages = (ROOT / "Dockerfile").read_text().split("\nFROM ")[1:]
    of_name = {stage.split()[2]: stage for stage in stages}

    def writes(name: str) -> bool:
        stage = of_name.get(name)
        return stage is not None and ("deploy/sbom.py" in stage or writes(stage.split()[0]))

    images = {name for name, stage in of_name.items() if "\nCMD " in stage}
    assert images == {"bridgehead", "node", "zookeeper", "tools"}
    assert {name for name in images if not writes(name)} == set()


SKIPPED = {"name": "a", "skip_reason": "not found"}
CLEAN = {"name": "b", "version": "1", "vulns": []}
VULNERABLE = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}


@pytest.mark.parametrize(
    ("packages", "status", "line"),
    [
        ([CLEAN], 0, "1 packages without a known vulnerability"),
        ([CLEAN, VULNERABLE], 1, "c 2: CVE-1, CVE-2"),
        ([CLEAN, SKIPPED], 0, "NOT TESTED: pip-audit's database does not know 1 packages."),
        ([SKIPPED, SKIPPED], 0, "NOT TESTED: pip-audit failed, or cannot reach its database"),
        ([], 0, "NOT TESTED: pip-audit failed, or cannot reach its database"),
    ],
    ids=["clean", "vulnerable", "partly unknown", "all unknown", "nothing"],
)
def test_an_audit_without_a_database_is_reported_as_not_tested(
    packages: list[Any], status: int, line: str
) -> None:
    findings = Findings()
    findings.add({"dependencies": packages})
    assert report(findings)[0] == status
    assert line in report(findings)[1]


@pytest.mark.parametrize("text", ["", "ERROR: no connection"])
def test_output_that_is_not_a_report_counts_as_not_tested(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.CompletedProcess((), 1, text, "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert audit("pip-audit", [tmp_path]) is None
    assert "NOT TESTED" in report(None)[1]


def test_a_vulnerable_package_is_reported_even_if_a_later_lock_is_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = iter([json.dumps({"dependencies": [VULNERABLE]}), ""])
    done = subprocess.CompletedProcess[str]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done((), 1, next(outputs), ""))
    status, text = report(audit("pip-audit", [tmp_path, tmp_path]))
    assert (status, text.splitlines()[1:]) == (1, ["c 2: CVE-1, CVE-2"])


def test_a_missing_pip_audit_counts_as_not_tested(tmp_path: Path) -> None:
    assert audit(str(tmp_path / "nothing"), [tmp_path / "a.lock"]) is None
