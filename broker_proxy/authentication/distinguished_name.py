"""A certificate's subject as Java's X500Principal writes it: RFC 2253, most specific first.

Kafka's ACLs and super users contain this text, so it must match exactly.
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

_KEYWORDS: Final = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_SPACE: Final = "\\ "


def certificate_name(certificate: bytes) -> str:
    """Return the subject of a DER certificate.

    Raises:
        ValueError: the bytes are not a certificate.
    """
    subject = x509.load_der_x509_certificate(certificate).subject
    return ",".join(
        "+".join(_attribute(attribute) for attribute in rdn) for rdn in reversed(subject.rdns)
    )


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword, value = _KEYWORDS.get(attribute.oid), attribute.value
    if keyword is None or isinstance(value, bytes):
        return f"{keyword or attribute.oid.dotted_string}=#{_encoded_value(attribute).hex()}"
    inner = value.strip(" ")
    leading = len(value) - len(value.lstrip(" "))
    trailing = len(value) - leading - len(inner)
    return f"{keyword}={_SPACE * leading}{''.join(map(_escape, inner))}{_SPACE * trailing}"


def _escape(character: str) -> str:
    if character == "\0":
        return "\\00"
    return f"\\{character}" if character in _ESCAPED else character


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """Return the value with its ASN.1 tag and length: the part after the object identifier."""
    rest = x509.Name([attribute]).public_bytes()
    for _ in range(3):  # Name, RelativeDistinguishedName, AttributeTypeAndValue
        rest = rest[_content_at(rest) :]
    return rest[_content_at(rest) + rest[1] :]


def _content_at(der: bytes) -> int:
    return 2 + (der[1] & 0x7F if der[1] & 0x80 else 0)
