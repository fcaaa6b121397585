"""The exception that a policy raises to reject a change."""

from __future__ import annotations


class PolicyViolationException(Exception):
    """The request does not satisfy the policy.

    The client gets error code 44, POLICY_VIOLATION, and the text of the exception. They apply to
    the topic or resource that violates the policy. Other topics and resources of the request are
    checked separately (KIP-108 §Proposed Changes). Some versions of requests are older than the
    error code, or have no field for a text. docs/kips.md lists their responses (rows 201.48 to
    201.50).
    """
