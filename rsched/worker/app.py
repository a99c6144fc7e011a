"""The application side of a worker: the functions it serves, by name, with their arguments validated by annotation."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from rsched.core.errors import Misconfigured
from rsched.core.ids import SLUG
from rsched.worker.context import JobContext

F = TypeVar("F", bound=Callable[..., Any])
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class BadArguments(ValueError):
    """The target's args or kwargs do not fit the function; the text names the argument."""


class _Slot(NamedTuple):
    name: str
    kind: Any
    type: Any
    required: bool
    is_context: bool


def _is_context(annotation: Any) -> bool:
    if annotation is JobContext:
        return True
    union = typing.get_origin(annotation) in (UnionType, typing.Union)
    return union and JobContext in typing.get_args(annotation)


class Function:
    """A registered function.

    Args:
        name: What targets call it by.
        call: The function itself.
        queue: The queue that its runs are expected on.
    """

    def __init__(self, name: str, call: Callable[..., Any], *, queue: str = "default") -> None:
        self.name, self.call, self.queue = name, call, queue
        self.is_async = inspect.iscoroutinefunction(call)
        self._slots: tuple[_Slot, ...] | None = None
        self._bare = False

    def _plan(self) -> tuple[_Slot, ...]:
        # Not at registration: annotations may name things that the module defines further down.
        try:
            hints = typing.get_type_hints(self.call, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise BadArguments(f"{self.name}: its annotations cannot be read: {error}") from error
        slots = []
        for parameter in inspect.signature(self.call).parameters.values():
            annotation = hints.get(parameter.name, Any)
            variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            required = parameter.default is parameter.empty and not variadic
            is_context = not variadic and _is_context(annotation)
            slots.append(_Slot(parameter.name, parameter.kind, annotation, required, is_context))
        self._bare = not any(s.required or s.is_context for s in slots)
        self._slots = tuple(slots)
        return self._slots

    def bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], context: Callable[[], JobContext]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Fits the arguments of a target to the function.

        Args:
            args: The target's args, JSON values.
            kwargs: The target's kwargs, JSON values.
            context: Makes the attempt's context; called only if the function wants one.

        Returns:
            The positional arguments and the keyword arguments of the call.

        Raises:
            BadArguments: They do not fit; the text names the argument.
        """
        slots = self._slots if self._slots is not None else self._plan()
        if self._bare and not args and not kwargs:
            return [], {}
        given, rest = list(args), dict(kwargs)
        out: list[Any] = []
        named: dict[str, Any] = {}
        for s in slots:
            in_place = s.kind in _POSITIONAL and not named
            if s.is_context:
                if in_place:
                    out.append(context())
                else:
                    named[s.name] = context()
            elif s.kind in _POSITIONAL and given:
                if s.name in rest:
                    raise BadArguments(f"{self.name}: argument {s.name!r} is in args and in kwargs")
                out.append(self._convert(given.pop(0), s))
            elif s.kind is inspect.Parameter.VAR_POSITIONAL:
                out.extend(self._convert(value, s) for value in given)
                given = []
            elif s.kind is inspect.Parameter.VAR_KEYWORD:
                named.update((key, self._convert(value, s, key)) for key, value in rest.items())
                rest = {}
            elif s.name in rest and s.kind is not inspect.Parameter.POSITIONAL_ONLY:
                named[s.name] = self._convert(rest.pop(s.name), s)
            elif s.required:
                raise BadArguments(f"{self.name}: argument {s.name!r} is missing")
            elif s.kind in _POSITIONAL:
                # Left to its default, so whatever follows has to go by name.
                named.setdefault("", None)
        named.pop("", None)
        if given:
            raise BadArguments(f"{self.name}: {len(given)} more positional arguments than it takes")
        if rest:
            raise BadArguments(f"{self.name}: it takes no argument {sorted(rest)[0]!r}")
        return out, named

    def _convert(self, value: Any, slot: _Slot, name: str | None = None) -> Any:
        if slot.type is Any:
            return value
        try:
            return msgspec.convert(value, slot.type)
        except msgspec.ValidationError as error:
            raise BadArguments(f"{self.name}: argument {name or slot.name!r}: {error}") from error
        except TypeError as error:
            raise BadArguments(
                f"{self.name}: argument {name or slot.name!r} has a type that JSON can't fill: {error}"
            ) from error


class App:
    """The functions of an application, by name. `rsched worker --app package.module:app` serves them.

    ::

        app = App()

        @app.function("reports.nightly")
        def nightly(day: date, context: JobContext) -> None: ...
    """

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    @property
    def queues(self) -> tuple[str, ...]:
        """Gives the queues that its functions are expected on; a worker serves these unless it is told otherwise."""
        return tuple(sorted({f.queue for f in self.functions.values()}))

    @overload
    def function(self, name: F) -> F: ...

    @overload
    def function(self, name: str | None = None, *, queue: str = "default") -> Callable[[F], F]: ...

    def function(self, name: Any = None, *, queue: str = "default") -> Any:
        """Registers a sync or async function: `@app.function("reports.nightly")`, or `@app.function` alone.

        Arguments come from the target's args and kwargs, converted to the types of the annotations; a parameter that is
        annotated as JobContext gets what the attempt knows about itself.

        Args:
            name: What targets call it by; by default its module and qualified name.
            queue: The queue that its runs are expected on.

        Returns:
            The function, unchanged.

        Raises:
            Misconfigured: The name is taken, the queue's name does not match, or what is registered is not a function.
        """
        if callable(name):
            return self._register(name, name=None, queue=queue)
        return lambda call: self._register(call, name=name, queue=queue)

    def _register(self, call: F, *, name: str | None, queue: str) -> F:
        if not callable(call):
            raise Misconfigured(f"@app.function takes a function, not {call!r}")
        if not SLUG.fullmatch(queue):
            raise Misconfigured(f"queue {queue!r} must match {SLUG.pattern}")
        name = name or f"{call.__module__}.{call.__qualname__}"
        if name in self.functions:
            raise Misconfigured(f"two functions are named {name!r}; give one of them another name")
        self.functions[name] = Function(name, call, queue=queue)
        return call


# The name that App had; it goes with the release after 0.1.
Worker = App


def load_app(path: str, *, folder: Path | None = None) -> App:
    """Imports an App.

    Args:
        path: As "package.module:attribute".
        folder: Where its module may be, beside what is on the path of imports; by default the current folder.

    Raises:
        Misconfigured: There is none, or importing it failed.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise Misconfigured(f'app {path!r} must be written as "package.module:attribute"')
    where = str(folder or Path.cwd())
    if where not in sys.path:
        sys.path.insert(0, where)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(error.name + ".")):
            raise Misconfigured(
                f"app {path!r}: {module_name} needs a module that is not installed: {error.name}"
            ) from error
        raise Misconfigured(f"app {path!r}: there is no module {error.name!r} in {where} or on PYTHONPATH") from error
    except Exception as error:
        raise Misconfigured(f"app {path!r}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    value: Any = module
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if not isinstance(value, App):
        others = sorted(k for k, v in vars(module).items() if isinstance(v, App))
        hint = f"; it has {', '.join(others)}" if others else "; write `app = rsched.App()` there"
        raise Misconfigured(f"app {path!r}: {attribute!r} is not a rsched.App in {module_name}{hint}")
    return value
