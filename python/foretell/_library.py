"""libforetell by ctypes: the JSON door of foretell.h and nothing else.

Only contexts and sessions are used, so that the two structs below are all of the ABI that has to agree. ctypes lets go
of the interpreter lock for the length of a call, and a context is read-only after it was opened: any number of threads
may ask at once, each with a session of its own, which remembers models and kernels from one request to the next and
ends with its thread. One context per predictor and calibration lives as long as the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _find
from ._encode import encoded, look
from .errors import Error, NotFoundError

__all__ = ["Context", "DEFAULT", "Settings", "answer", "context"]


class _Error(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("message", ctypes.c_char * 640),
        ("where", ctypes.c_char * 256),
        ("line", ctypes.c_int),
        ("column", ctypes.c_int),
        ("value", ctypes.c_double),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("predictor", ctypes.c_char_p),
        ("quantile", ctypes.c_double),
        ("calibration", ctypes.c_char_p),
        ("predictor_data", ctypes.c_void_p),
        ("predictor_length", ctypes.c_size_t),
    ]


class Settings(NamedTuple):
    """What a context is opened with."""

    predictor: str | None = None  # None: the shipped one; a file, "roofline", "linear", "scaling:GPU"
    calibration: str | None = None  # a file that `foretell fit --calibrate` wrote


DEFAULT = Settings()


class _Library:
    def __init__(self) -> None:
        path = _find.library()
        try:
            self.native = ctypes.CDLL(os.fspath(path))
        except OSError as error:
            raise NotFoundError(f"cannot load libforetell: {error}", where=os.fspath(path)) from None
        self.path = path
        try:
            self.open = self.native.ft_open_sized
            self.session_open = self.native.ft_session_open
            self.session_close = self.native.ft_session_close
            self.session_answer = self.native.ft_session_answer
            self.status_name = self.native.ft_status_name
        except AttributeError as error:
            raise NotFoundError(f"this is not libforetell: {error}", where=os.fspath(path)) from None
        handle, fault, size = ctypes.c_void_p, ctypes.POINTER(_Error), ctypes.c_size_t
        self.open.argtypes = [ctypes.POINTER(handle), ctypes.POINTER(_Options), size, fault]
        self.open.restype = ctypes.c_int
        self.session_open.argtypes = [ctypes.POINTER(handle), handle, fault]
        self.session_open.restype = ctypes.c_int
        self.session_close.argtypes = [handle]
        self.session_close.restype = None
        self.session_answer.argtypes = [handle, ctypes.c_char_p, size, ctypes.POINTER(size)]
        self.session_answer.restype = ctypes.c_void_p
        self.status_name.argtypes = [ctypes.c_int]
        self.status_name.restype = ctypes.c_char_p


class _Session:
    """An open ``ft_session``: of one thread, which closes it when it ends."""

    def __init__(self, native: _Library, context: ctypes.c_void_p) -> None:
        self._native = native
        self._handle = ctypes.c_void_p()
        if native.session_open(ctypes.byref(self._handle), context, None) != 0:
            raise MemoryError("libforetell is out of memory")

    def __del__(self) -> None:
        self._native.session_close(self._handle)

    def answer(self, request: bytes) -> bytes:
        length = ctypes.c_size_t()
        pointer = self._native.session_answer(self._handle, request, len(request), ctypes.byref(length))
        if not pointer:
            raise MemoryError("libforetell is out of memory")
        return ctypes.string_at(pointer, length.value)


class Context:
    """An open ``ft_context``. Made by :func:`context`, never closed before the process ends."""

    def __init__(self, native: _Library, settings: Settings) -> None:
        self._native = native
        self._handle = ctypes.c_void_p()
        self._of_thread = threading.local()
        options = _Options(
            predictor=os.fsencode(settings.predictor) if settings.predictor else None,
            calibration=os.fsencode(settings.calibration) if settings.calibration else None,
        )
        error = _Error()
        status = native.open(
            ctypes.byref(self._handle), ctypes.byref(options), ctypes.sizeof(options), ctypes.byref(error)
        )
        if status != 0:
            code = native.status_name(status)
            raise Error(
                error.message.decode(errors="replace") or "libforetell could not be opened",
                code=code.decode() if code else "bug",
                where=error.where.decode(errors="replace"),
            )

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One request in, one answer out, as JSON objects; a refusal is an answer with ``"ok": false``."""
        told: dict[str, Any] = json.loads(self.answer_bytes(encoded(request)))
        if told.get("ok") is False and str(told["error"].get("where")).startswith("line 1, column"):
            look(request)  # a column of text that nobody saw is no place
        return told

    def answer_bytes(self, request: bytes) -> bytes:
        """One request in, one answer out, as they are on the wire."""
        session: _Session | None = getattr(self._of_thread, "session", None)
        if session is None:
            session = self._of_thread.session = _Session(self._native, self._handle)
        return session.answer(request)


_lock = threading.Lock()
_library: _Library | None = None
_contexts: dict[Settings, Context] = {}


def context(settings: Settings = DEFAULT) -> Context:
    """The context with these settings, opened when it is first asked for."""
    global _library
    known = _contexts.get(settings)
    if known:
        return known
    with _lock:
        if _library is None:
            _library = _Library()
        if settings not in _contexts:
            _contexts[settings] = Context(_library, settings)
        return _contexts[settings]


def answer(request: Mapping[str, Any], settings: Settings = DEFAULT) -> dict[str, Any]:
    """Asks libforetell.

    >>> told = answer({"task": "kernel", "op": "gemm", "m": 4096, "n": 4096, "k": 4096, "gpu": "h100_sxm"})
    >>> told["ok"], 0.1 < told["ms"] < 0.3
    (True, True)
    """
    return context(settings).answer(request)
