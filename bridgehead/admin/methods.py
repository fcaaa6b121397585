"""Names, signatures and docstrings for the methods of AdminClient and AsyncAdminClient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def describe(method: Any, call: Callable[..., Any], result: str = "{}") -> None:
    """Give a method the call's name, signature and docstring, which `help` shows.

    `result` is the method's return type, in which `{}` is replaced by the call's result type.
    """
    functools.update_wrapper(method, call)
    signature = inspect.signature(call)
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(
        parameters=[self, *signature.parameters.values()],
        return_annotation=result.format(signature.return_annotation.removeprefix("Plan[")[:-1]),
    )
