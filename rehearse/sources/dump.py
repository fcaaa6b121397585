"""A tree of znodes as a file: JSON lines, a header and then one line per znode.

Secrets are left out, unless a key seals them: SCRAM credentials, delegation tokens, passwords, and
the values of configs that Kafka does not know, which may be passwords. A line names what it lacks.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
from cryptography.fernet import Fernet, InvalidToken

from cluster_model.client_quotas import CLIENT_KEYS, IP_KEYS
from cluster_model.configs.broker_configs.table import config_key
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from cluster_model.znodes.access import ZnodeAcl
from rehearse.znodes import ZNODES_MAX, Hidden, SourceError, Znode, ZnodeTree, is_in_layout

_FORMAT: Final = "bridgehead znodes"
_VERSION: Final = 1
_LINE_BYTES_MAX: Final = 1 << 26
_PATH_MAX: Final = 1 << 16
_SHOWN: Final[Mapping[str, Callable[[str], bool]]] = {
    "users": CLIENT_KEYS.__contains__,
    "clients": CLIENT_KEYS.__contains__,
    "ips": IP_KEYS.__contains__,
    "topics": lambda name: name in TOPIC_CONFIGS and not TOPIC_CONFIGS[name].sensitive,
    "brokers": lambda name: (key := config_key(name)) is not None and not key.sensitive,
}
_TOKENS: Final = "/delegation_token/tokens/"


def write_dump(tree: ZnodeTree, file: Path, key: bytes | None = None) -> int:
    """Write a tree to a file that only its owner can read; return how many znodes have secrets.

    `key` seals the secrets; without it they are left out.

    Raises:
        SourceError: the file cannot be written.
    """
    fernet = None if key is None else Fernet(key)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "zxid": tree.zxid,
        "is_one_state": tree.is_one_state,
        "secrets": "left out" if fernet is None else "sealed",
        "znodes": len(tree.znodes),
    }
    secrets = 0
    part = file.with_name(f"{file.name}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(part, flags, 0o600), "wb") as out:
            out.write(orjson.dumps(header) + b"\n")
            for path in sorted(tree.znodes):
                line = _line(path, tree.znodes[path], fernet)
                secrets += "left_out" in line
                out.write(orjson.dumps(line) + b"\n")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SourceError(f"{file} cannot be written: {error.strerror}.") from None
    return secrets


def _line(path: str, znode: Znode, fernet: Fernet | None) -> dict[str, Any]:
    line: dict[str, Any] = {"path": path, "version": znode.version}
    data, left_out = _without_secrets(path, znode)
    line |= _as_text(data)
    if znode.ephemeral:
        line["ephemeral"] = True
    if znode.acls is not None:
        line["acls"] = [list(acl) for acl in znode.acls]
    if znode.hidden is Hidden.NO_AUTH:
        line["hidden"] = Hidden.NO_AUTH.name
    elif left_out is not None:
        line |= {"hidden": Hidden.LEFT_OUT.name, "left_out": left_out}
        if fernet is not None and znode.data is not None:
            line["sealed"] = fernet.encrypt(znode.data).decode()
    return line


def _as_text(data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {"data": None}
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _without_secrets(path: str, znode: Znode) -> tuple[bytes | None, tuple[str, ...] | None]:
    """Return the data that may be shown, and what it lacks: None if it lacks nothing.

    An empty tuple means that all of the data is left out.
    """
    data = znode.data
    if znode.hidden is Hidden.LEFT_OUT:
        return data, znode.left_out
    if not data:
        return data, None
    if path.startswith(_TOKENS):
        return None, ()
    _, root, entity_type, *_ = (*path.split("/"), "", "")
    if root != "config" or entity_type in ("", "changes"):
        return data, None
    # What cannot be understood may be secret.
    try:
        content = orjson.loads(data)
    except ValueError:
        return None, ()
    if not isinstance(content, dict) or content.keys() - {"version", "config"}:
        return None, ()
    configs = content.get("config", {})
    if not isinstance(configs, dict) or entity_type not in _SHOWN:
        return None, ()
    secrets = tuple(name for name in configs if not _SHOWN[entity_type](name))
    if not secrets:
        return data, None
    shown = {name: value for name, value in configs.items() if name not in secrets}
    return orjson.dumps({**content, "config": shown}), secrets


def read_dump(file: Path, key: bytes | None = None) -> ZnodeTree:
    """Return the tree of a dump; `key` opens the sealed secrets.

    Raises:
        SourceError: the file is no dump, is damaged or cut off, or the key is another one.
    """
    try:
        with file.open("rb") as stream:
            return _read(stream, None if key is None else Fernet(key))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}.") from None
    except InvalidToken:
        raise SourceError(f"{file}: the key does not open its secrets.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{file}: {_shown(error)}.") from None


def _read(stream: BinaryIO, fernet: Fernet | None) -> ZnodeTree:
    header = _line_of(stream) or {}
    if header.get("format") != _FORMAT:
        raise ValueError("this is not a dump of `bridgehead zookeeper dump`")
    if header.get("version") != _VERSION:
        raise ValueError(f"this release reads dumps of version {_VERSION} only")
    znodes: dict[str, Znode] = {}
    for number in range(2, ZNODES_MAX + 3):
        try:
            line = _line_of(stream)
            if line is None:
                break
            path, znode = _znode(line, fernet)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"line {number}: {_shown(error)}") from None
        znodes[path] = znode
    else:
        raise ValueError(f"it has more than {ZNODES_MAX:,} znodes")
    if len(znodes) != header.get("znodes"):
        raise ValueError(f"it is cut off: {len(znodes):,} of {header.get('znodes')} znodes")
    zxid = header.get("zxid")
    return ZnodeTree(
        znodes, zxid if type(zxid) is int else None, is_one_state=header.get("is_one_state") is True
    )


def _line_of(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next line; None at the end. Raises ValueError."""
    if not (line := stream.readline(_LINE_BYTES_MAX)):
        return None
    if len(line) == _LINE_BYTES_MAX:
        raise ValueError(f"it has more than {_LINE_BYTES_MAX:,} bytes")
    value = orjson.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _znode(line: Mapping[str, Any], fernet: Fernet | None) -> tuple[str, Znode]:
    path, version = line["path"], line["version"]
    if not (isinstance(path, str) and len(path) <= _PATH_MAX and is_in_layout(path)):
        raise ValueError("its path is not one of Kafka's")
    data = base64.b64decode(line["base64"], validate=True) if "base64" in line else line["data"]
    if type(version) is not int or not isinstance(data, str | bytes | None):
        raise ValueError("its version or its data has another type")
    hidden = Hidden[line["hidden"]] if "hidden" in line else None
    left_out = tuple(str(name) for name in line.get("left_out", ()))
    if fernet is not None and "sealed" in line:
        data, hidden, left_out = fernet.decrypt(line["sealed"]), None, ()
    acls = line.get("acls")
    return path, Znode(
        data.encode() if isinstance(data, str) else data,
        version,
        ephemeral=line.get("ephemeral") is True,
        acls=None if acls is None else tuple(_acl(*acl) for acl in acls),
        hidden=hidden,
        left_out=left_out,
    )


def _acl(permissions: int, scheme: str, identity: str) -> ZnodeAcl:
    return ZnodeAcl(int(permissions), str(scheme), str(identity))


def read_key(file: Path, *, create: bool = False) -> bytes:
    """Return the key in a file; with `create`, write a new one if there is no file.

    Raises:
        SourceError: the file cannot be read or written, or has no key.
    """
    try:
        if create and not file.exists():
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(Fernet.generate_key() + b"\n")
        key = file.read_bytes().strip()
        Fernet(key)
    except OSError as error:
        raise SourceError(f"{file} cannot be used as a key: {error.strerror}.") from None
    except ValueError:
        raise SourceError(f"{file} has no key of `bridgehead zookeeper dump`.") from None
    return key


def _shown(error: Exception) -> str:
    text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return text[:200]
