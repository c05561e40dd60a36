# SPDX-License-Identifier: MIT
"""Checks the files of a call before anything in them is used: they may come from anywhere.

Only the shape of the data is checked: types and lists, names of files inside the call's own folder, numbers.
calls.Decoder checks what the arguments mean."""
import json
import math
import os
import re
import stat

import torch

MAX_DEPTH = 16      # of nested lists, tuples and dicts
MAX_VALUES = 100000  # in a file
_MAX_BYTES = 64 << 20
_MAX_AXES = 64
_MAX_SIZE = 1 << 48  # of an axis
_NAME = re.compile(r"[\w-][\w.-]*\.npy", re.ASCII)
_TEXT, _NUMBER, _COUNT = "a text", "a number", "a whole number"
_ABOUT = {"number": _COUNT, "step": _COUNT, "node": _TEXT, "phase": _TEXT, "line": _TEXT, "api": _TEXT}
_MAY_BE = {"function": _TEXT, "why": _TEXT, "refused": _TEXT, "device": _TEXT, "grad_fn": _TEXT, "scale": _NUMBER}


class WrongCall(Exception):
    """What is wrong with a file: one line, without the file's name."""


def read(path):
    """Reads the JSON object in a file. OSError, WrongCall."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, encoding="utf-8") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise WrongCall("it is not a regular file")
        if about.st_size > _MAX_BYTES:
            raise WrongCall("it has %d bytes, the limit is %d" % (about.st_size, _MAX_BYTES))
        try:
            found = json.loads(file.read(_MAX_BYTES + 1))
        except ValueError as error:
            raise WrongCall("it cannot be read: %s" % error)
        except RecursionError:
            raise WrongCall("it is nested too deeply")
    if not isinstance(found, dict):
        raise WrongCall("it is not a JSON object")
    return found


def check_about(about):
    """Checks overflow.json. WrongCall."""
    for name, kind in _ABOUT.items():
        if name not in about:
            raise WrongCall("\"%s\" is missing" % name)
        _expect(name, about[name], kind)
    for name, kind in _MAY_BE.items():
        if about.get(name) is not None:
            _expect(name, about[name], kind)
    autocast = about.get("autocast")
    if autocast is not None:
        given = dtype_of(autocast.get("dtype")) if isinstance(autocast, dict) else None
        if given is None or not given.is_floating_point:
            raise WrongCall("\"autocast\" does not name a floating-point type")
    check_given("outputs", about.get("outputs"))


def check_given(name, values):
    """Checks a list of tensors, null where there is none: outputs or gradients. WrongCall."""
    if not isinstance(values, list):
        raise WrongCall("\"%s\" is not a list" % name)
    _check_values([value for value in values if value is not None], name)
    for value in values:
        if value is not None and not isinstance(value, dict):
            raise WrongCall("\"%s\" contains something that is not a tensor" % name)


def check_arguments(arguments):
    """Checks {"args": [...], "kwargs": {...}}. WrongCall."""
    if not isinstance(arguments, dict) or not isinstance(arguments.get("args"), list) \
            or not isinstance(arguments.get("kwargs"), dict):
        raise WrongCall("\"args\" or \"kwargs\" is missing")
    _check_values(arguments["args"] + list(arguments["kwargs"].values()), "args")


def dtype_of(text):
    """The dtype that "torch.float32" names; None: it names none."""
    found = getattr(torch, text.rsplit(".", 1)[-1], None) if isinstance(text, str) else None
    return found if isinstance(found, torch.dtype) else None


def _expect(name, value, kind):
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    is_number = is_whole or (isinstance(value, float) and math.isfinite(value))
    if not {_TEXT: isinstance(value, str), _COUNT: is_whole, _NUMBER: is_number}[kind]:
        raise WrongCall("\"%s\" is not %s" % (name, kind))


def _check_values(values, name):
    """Checks the JSON values of arguments, without recursion."""
    waiting, seen = [(value, 0) for value in values], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            raise WrongCall("\"%s\" is nested too deeply or has too many values" % name)
        if isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise WrongCall("\"%s\" contains an argument without a type" % name)
        elif value["type"] == "torch.Tensor":
            _check_tensor(value)
        elif value["type"] in ("tuple", "dict"):
            waiting += [(item, depth + 1) for item in _items(value)]


def _items(value):
    inner = value.get("value")
    if not isinstance(inner, list if value["type"] == "tuple" else dict):
        raise WrongCall("an argument is declared as %s but is not one" % value["type"])
    return inner if isinstance(inner, list) else list(inner.values())


def _check_tensor(tensor):
    shape, path = tensor.get("shape"), tensor.get("datapath")
    if dtype_of(tensor.get("dtype")) is None:
        raise WrongCall("a tensor's \"dtype\" is not a type of PyTorch %s" % torch.__version__)
    if not isinstance(shape, list) or len(shape) > _MAX_AXES or not all(
            type(size) is int and 0 <= size <= _MAX_SIZE for size in shape):
        raise WrongCall("a tensor's \"shape\" is not a list of sizes")
    if path is not None and not (isinstance(path, str) and _NAME.fullmatch(path)):
        raise WrongCall("a tensor's \"datapath\" is not the name of a .npy file in the call's own folder")
    if tensor.get("note") is not None:
        _expect("note", tensor["note"], _TEXT)
