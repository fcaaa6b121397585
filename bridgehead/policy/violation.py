"""The exception that a policy raises to reject a change."""

from __future__ import annotations


class PolicyViolationException(Exception):
    """The request does not satisfy the policy. The client gets the text of the exception.

    Clients get error code 44, POLICY_VIOLATION, for the one topic or resource concerned;
    the others of the same request are checked separately (KIP-108 §Proposed Changes).
    """
