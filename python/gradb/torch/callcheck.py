# SPDX-License-Identifier: MIT
"""What a call's files must look like before anything of them is used: they may come from anywhere.

Only the shape of the data is looked at here: which types and lists there are, that names of files are names of files
in the call's own folder, that numbers are numbers. What the arguments mean, calls.Decoder says.
"""
import json
import math
import os
import re
import stat

import torch

MAX_DEPTH = 16      # of lists, tuples and dicts in one another
MAX_VALUES = 100000  # of a file
_MAX_BYTES = 64 << 20
_MAX_AXES = 64
_MAX_SIZE = 1 << 48  # of an axis
_NAME = re.compile(r"[\w-][\w.-]*\.npy", re.ASCII)
_TEXT, _NUMBER, _COUNT = "a text", "a number", "a whole number"
_ABOUT = {"number": _COUNT, "step": _COUNT, "node": _TEXT, "phase": _TEXT, "line": _TEXT, "api": _TEXT}
_MAY_BE = {"function": _TEXT, "why": _TEXT, "refused": _TEXT, "device": _TEXT, "grad_fn": _TEXT, "scale": _NUMBER}


class WrongCall(Exception):
    """What is wrong with a file, in one line without its name."""


def read(path):
    """The JSON object of a file. OSError, WrongCall."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, encoding="utf-8") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise WrongCall("it is no file")
        if about.st_size > _MAX_BYTES:
            raise WrongCall("it has %d bytes, more than %d" % (about.st_size, _MAX_BYTES))
        try:
            found = json.loads(file.read(_MAX_BYTES + 1))
        except ValueError as error:
            raise WrongCall("it cannot be read: %s" % error)
        except RecursionError:
            raise WrongCall("it is nested too deep")
    if not isinstance(found, dict):
        raise WrongCall("it is no JSON object")
    return found


def check_about(about):
    """What overflow.json says of the call. WrongCall."""
    for name, kind in _ABOUT.items():
        if name not in about:
            raise WrongCall("it lacks \"%s\"" % name)
        _expect(name, about[name], kind)
    for name, kind in _MAY_BE.items():
        if about.get(name) is not None:
            _expect(name, about[name], kind)
    autocast = about.get("autocast")
    if autocast is not None:
        given = dtype_of(autocast.get("dtype")) if isinstance(autocast, dict) else None
        if given is None or not given.is_floating_point:
            raise WrongCall("\"autocast\" names no type")
    check_given("outputs", about.get("outputs"))


def check_given(name, values):
    """A list of tensors, or of null where there is none: outputs, gradients. WrongCall."""
    if not isinstance(values, list):
        raise WrongCall("\"%s\" is no list" % name)
    _check_values([value for value in values if value is not None], name)
    for value in values:
        if value is not None and not isinstance(value, dict):
            raise WrongCall("\"%s\" holds what is no tensor" % name)


def check_arguments(arguments):
    """{"args": [...], "kwargs": {...}}. WrongCall."""
    if not isinstance(arguments, dict) or not isinstance(arguments.get("args"), list) \
            or not isinstance(arguments.get("kwargs"), dict):
        raise WrongCall("it lacks \"args\" or \"kwargs\"")
    _check_values(arguments["args"] + list(arguments["kwargs"].values()), "args")


def dtype_of(text):
    """The type of torch's that "torch.float32" names; None: it names none."""
    found = getattr(torch, text.rsplit(".", 1)[-1], None) if isinstance(text, str) else None
    return found if isinstance(found, torch.dtype) else None


def _expect(name, value, kind):
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    is_number = is_whole or (isinstance(value, float) and math.isfinite(value))
    if not {_TEXT: isinstance(value, str), _COUNT: is_whole, _NUMBER: is_number}[kind]:
        raise WrongCall("\"%s\" is not %s" % (name, kind))


def _check_values(values, name):
    """JSON values of arguments, one after the other, without a call for each level."""
    waiting, seen = [(value, 0) for value in values], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            raise WrongCall("\"%s\" is nested too deep, or has too many values" % name)
        if isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise WrongCall("\"%s\" holds an argument without a type" % name)
        elif value["type"] == "torch.Tensor":
            _check_tensor(value)
        elif value["type"] in ("tuple", "dict"):
            waiting += [(item, depth + 1) for item in _items(value)]


def _items(value):
    inner = value.get("value")
    if not isinstance(inner, list if value["type"] == "tuple" else dict):
        raise WrongCall("a %s among the arguments is none" % value["type"])
    return inner if isinstance(inner, list) else list(inner.values())


def _check_tensor(tensor):
    shape, path = tensor.get("shape"), tensor.get("datapath")
    if dtype_of(tensor.get("dtype")) is None:
        raise WrongCall("a tensor's \"dtype\" names no type of PyTorch %s" % torch.__version__)
    if not isinstance(shape, list) or len(shape) > _MAX_AXES or not all(
            type(size) is int and 0 <= size <= _MAX_SIZE for size in shape):
        raise WrongCall("a tensor's \"shape\" is no list of sizes")
    if path is not None and not (isinstance(path, str) and _NAME.fullmatch(path)):
        raise WrongCall("a tensor's \"datapath\" is no name of a .npy file in the call's own folder")
    if tensor.get("note") is not None:
        _expect("note", tensor["note"], _TEXT)
