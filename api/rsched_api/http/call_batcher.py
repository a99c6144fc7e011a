"""Calls that share: what is asked for while one call is under way goes along with the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rsched.core.errors import Unavailable

A = TypeVar("A")
R = TypeVar("R")
# In place of a result: whoever gets it carries the next call.
_TURN: tuple[()] = ()


class Together(Generic[A, R]):
    """Makes calls of one moment share: whoever comes first carries the arguments of those who wait.

    `call` gives one result for each argument, in order. There is no task of its own.
    """

    def __init__(self, call: Callable[[Sequence[A]], Awaitable[Sequence[R]]], *, most: int) -> None:
        self._call, self._most = call, most
        self._waiting: list[tuple[A, asyncio.Future[tuple[R, ...]]]] = []
        self._under_way = False

    async def __call__(self, argument: A) -> R:
        """Returns the result for this argument.

        Raises:
            Exception: What the call raises is raised for all whose arguments went along.
            Unavailable: Whoever carried the call was cancelled.
        """
        if not self._under_way:
            self._under_way = True
            return await self._carry(argument, ())
        future: asyncio.Future[tuple[R, ...]] = asyncio.get_running_loop().create_future()
        self._waiting.append((argument, future))
        try:
            result = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and not future.exception() and future.result() == _TURN:
                self._pass_on()
            raise
        if result:
            return result[0]
        others = self._waiting[: self._most - 1]
        del self._waiting[: self._most - 1]
        return await self._carry(argument, others)

    async def _carry(self, argument: A, others: Sequence[tuple[A, asyncio.Future[tuple[R, ...]]]]) -> R:
        try:
            results = await self._call([argument, *(other for other, _ in others)])
        except BaseException as error:
            shared = error if isinstance(error, Exception) else Unavailable("the call was given up; repeat the request")
            for _, future in others:
                if not future.done():
                    future.set_exception(shared)
            raise
        else:
            for (_, future), result in zip(others, results[1:], strict=True):
                if not future.done():
                    future.set_result((result,))
            return results[0]
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            _, future = self._waiting.pop(0)
            if not future.done():
                future.set_result(_TURN)
                return
        self._under_way = False
