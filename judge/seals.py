"""The seal of a run: the digests in its manifest, and the manifest's signature.

The signature is the HMAC-SHA256 (RFC 2104) of the bytes of manifest.json with the user's seal key,
in hexadecimal, in manifest.hmac. The judge and the pipeline follow these rules. docs/evidence.md
says what the digests and the signature protect against.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

SIGNATURE: Final = "manifest.hmac"
SIGNATURE_BYTES_MAX: Final = 4096
KEY_BYTES_MIN: Final = 16
KEY_BYTES_MAX: Final = 4096
UNSEALED: Final = "the run is not sealed: its evidence may have been changed"
UNSIGNED: Final = "the manifest is not signed: it may have been replaced"


class SealError(Exception):
    """A key cannot be used, or did not sign the manifest. The message does not contain the key."""


class Seal(StrEnum):
    """How a run was sealed, as far as the judge could check."""

    UNSEALED = "unsealed"  # no manifest
    UNSIGNED = "unsigned"  # a manifest without a signature
    UNCHECKED = "unchecked"  # a signature, and no key to check it with
    SIGNED = "signed"  # a signature of the given key


@dataclass(frozen=True, slots=True, kw_only=True)
class SealRules:
    """What a judge requires of a seal."""

    key: bytes | None = field(default=None, repr=False)  # must have signed the manifest
    accept_unsealed: bool = False

    def check(self, signed: bytes | None, manifest: bytes, where: object) -> Seal:
        """Return how a manifest is signed.

        Args:
            signed: the content of the file SIGNATURE in the folder of the run; None if it has none.
            manifest: the bytes of the manifest.
            where: names the file in messages.

        Raises:
            SealError: another key signed the manifest, or the manifest has changed since.
        """
        if signed is None:
            return Seal.UNSIGNED
        if self.key is None:
            return Seal.UNCHECKED
        if not hmac.compare_digest(signed.strip(), signature(self.key, manifest)):
            raise SealError(
                f"{where} does not sign the manifest with this key: the manifest "
                "has changed since it was sealed, or it was sealed with another key."
            )
        return Seal.SIGNED

    def doubt(self, seal: Seal) -> str:
        """Return why evidence with this seal may have been changed; "" if there is no reason."""
        if seal is Seal.UNSEALED and not self.accept_unsealed:
            return UNSEALED
        return UNSIGNED if seal is Seal.UNSIGNED and self.key is not None else ""


def seal_rules(key_file: Path | None, *, accept_unsealed: bool) -> SealRules:
    """Return the rules that a judge's options select.

    Raises:
        SealError: the key file cannot be used, or the options contradict each other.
    """
    if key_file is None:
        return SealRules(accept_unsealed=accept_unsealed)
    if accept_unsealed:
        raise SealError(
            "--seal-key and --unsealed exclude each other: an unsealed run has no signature."
        )
    return SealRules(key=read_key(key_file))


def read_key(path: Path) -> bytes:
    """Return the key in a file, without surrounding white space.

    Raises:
        SealError: the file cannot be read, other users can read it, or the key is too short or
            too long.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise SealError(f"The seal key {path} is not a regular file.")
            key = os.read(descriptor, KEY_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SealError(f"The seal key {path} cannot be read: {error.strerror}.") from None
    if stat.S_IMODE(mode) & 0o077:
        raise SealError(f"Other users can read the seal key {path}: run `chmod 600` on it.")
    if len(key) > KEY_BYTES_MAX:
        raise SealError(f"{path} is not a seal key: it has more than {KEY_BYTES_MAX} bytes.")
    key = key.strip()
    if len(key) < KEY_BYTES_MIN:
        raise SealError(
            f"The seal key {path} has {len(key)} bytes, fewer than {KEY_BYTES_MIN}: create one "
            "with `openssl rand -hex 32`."
        )
    return key


def signature(key: bytes, manifest: bytes) -> bytes:
    """Return the signature of a manifest's bytes, in hexadecimal."""
    return hmac.new(key, manifest, hashlib.sha256).hexdigest().encode()
