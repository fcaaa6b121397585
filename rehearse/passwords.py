"""Passwords in broker configs, as Kafka's EncryptingPasswordEncoder stores them.

The stored text is a list of `name:value`, with the salt, the parameters and the encrypted password;
the key is derived from `password.encoder.secret` (KIP-226).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from bridgehead.kafka_wire.config_codes import ConfigType
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS, UpdateMode

# Kafka compares the end of a name, so that prefixes of listeners match.
_PASSWORDS: Final = tuple(
    name
    for name, key in BROKER_CONFIGS.items()
    if key.type is ConfigType.PASSWORD and key.update_mode is not UpdateMode.READ_ONLY
)
_ITERATIONS_MAX: Final = 100_000  # Kafka's default is 4,096
_HASHES: Final = {"PBKDF2WithHmacSHA512": "sha512", "PBKDF2WithHmacSHA1": "sha1"}
_HASHES_BY_SIZE: Final = {f"PBKDF2WithHmacSHA{bits}": f"sha{bits}" for bits in (224, 256, 384)}


def is_password(name: str) -> bool:
    """Return whether Kafka stores the values of a config encrypted."""
    return name.endswith(_PASSWORDS)


def is_encoded_with(stored: str, secret: str) -> bool:
    """Return whether a stored password can be decrypted with a secret.

    A password that needs too much time counts as decrypted.
    """
    try:
        fields = dict(field.split(":", 1) for field in stored.split(","))
        hash_name = {**_HASHES, **_HASHES_BY_SIZE}[fields["keyFactoryAlgorithm"]]
        iterations, bits = int(fields["iterations"]), int(fields["keyLength"])
        if iterations > _ITERATIONS_MAX:
            return True
        salt, encrypted, vector = (
            base64.b64decode(fields[name], validate=True)
            for name in ("salt", "encryptedPassword", "initializationVector")
        )
        key = hashlib.pbkdf2_hmac(hash_name, secret.encode(), salt, iterations, bits // 8)
        password = _decrypt(fields["cipherAlgorithm"], key, vector, encrypted).decode()
        return len(password.encode("utf-16-le")) // 2 == int(fields["passwordLength"])
    except (KeyError, ValueError, OverflowError, InvalidTag, UnsupportedAlgorithm):
        return False


def _decrypt(cipher: str, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    algorithm, mode, *_ = cipher.split("/")
    if algorithm == "AES" and mode == "GCM":
        return AESGCM(key).decrypt(vector, encrypted, None)
    if algorithm != "AES" or mode != "CBC":
        raise ValueError(f"the cipher {cipher} is not known")
    decryptor = Cipher(AES(key), CBC(vector)).decryptor()
    unpadder = padding.PKCS7(AES.block_size).unpadder()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()
