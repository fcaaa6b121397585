"""The exception that a policy raises to reject a change."""

from __future__ import annotations


class PolicyViolationException(Exception):
    """The request does not satisfy the policy.

    The client gets error code 44, POLICY_VIOLATION, and the text of the exception for the topic or
    resource that violates the policy. Other topics and resources of the request are checked
    separately (KIP-108 §Proposed Changes). Versions that predate the error code, or have no field
    for a text, answer as docs/kips.md lists (rows 201.48 to 201.50).
    """
