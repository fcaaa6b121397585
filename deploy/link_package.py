"""`python -m deploy.link_package`: make this checkout importable in the running interpreter.

`make setup` calls it for `.venv`. The package is a symbolic link, so it is never stale, and the
other packages of the tree stay invisible. The metadata register the pytest plug-in.
"""

from __future__ import annotations

import shutil
import sysconfig
import tomllib
from pathlib import Path
from typing import Final

from hatchling.build import prepare_metadata_for_build_wheel

ROOT: Final = Path(__file__).resolve().parents[1]


def link(site: Path, root: Path = ROOT) -> Path:
    """Link the package of `root` into `site`; return the folder with its metadata."""
    for old in site.glob("bridgehead-*.dist-info"):
        shutil.rmtree(old)
    package = site / "bridgehead"
    package.unlink(missing_ok=True)
    package.symlink_to(root / "bridgehead", target_is_directory=True)
    metadata = site / prepare_metadata_for_build_wheel(str(site))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [
        line
        for group, names in groups.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in names.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (metadata / "INSTALLER").write_text("make setup\n", encoding="utf-8")
    return metadata


if __name__ == "__main__":
    link(Path(sysconfig.get_path("purelib")))
