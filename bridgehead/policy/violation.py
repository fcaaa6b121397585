"""How a policy says no."""

from __future__ import annotations


class PolicyViolationException(Exception):
    """The request does not satisfy the policy. Its text is what the client is told.

    Clients get error code 44, POLICY_VIOLATION, for the one topic or resource that it is about;
    the others of the same request are judged for themselves (KIP-108 §Proposed Changes).
    """
