# SPDX-License-Identifier: MIT
"""A call of an operator as data: its function by name, its arguments in order, its tensors apart. It can be kept
beyond the training's own tensors, written to a folder, read on another machine, and called again.

An argument is a JSON value, in the words that ptdbg_ascend's forward_info and backward_info use: {"type": "int",
"value": 3}, {"type": "torch.Tensor", "dtype", "shape", "Max", "Min", "requires_grad", "datapath"}, where datapath
is the tensor's file in the call's folder. Lists are lists; a tuple or dict is {"type": "tuple" | "dict", "value"}.
"""
import contextlib
import json
import math
import os
import shutil
import types

import torch

from . import callcheck, cuda, npy, values

FORWARD_FILE, BACKWARD_FILE, STACK_FILE, OWN_FILE = ("forward_info.json", "backward_info.json", "stack_info.json",
                                                     "overflow.json")
FORMAT = "gradb.overflow"
VERSION = 1
_MAX_DEPTH = 8
_MAX_ITEMS = 4096   # of a list among the arguments
_MAX_TEXT = 4096
_MAX_NAMES = 1000  # tried for a new folder
_SCALARS = {type(None): "NoneType", bool: "bool", int: "int", float: "float", str: "str"}
_OWNERS = (("torch.nn.functional", torch.nn.functional), ("torch", torch), ("torch.Tensor", torch.Tensor),
           ("torch.Tensor", torch._C._TensorBase), ("torch._C._nn", torch._C._nn), ("torch.linalg", torch.linalg),
           ("torch.special", torch.special), ("torch.fft", torch.fft), ("torch._VF", torch._VF),
           ("torch._C._VariableFunctions", torch._C._VariableFunctions))
_PREFIXES = {"torch": "Torch", "torch.Tensor": "Tensor", "torch._VF": "VF", "torch._C._VariableFunctions": "Torch"}
_NEVER = frozenset(("from_file", "load", "save"))  # what reads or writes files is no operator


class CallError(Exception):
    """Why a call cannot be kept, read or made again: one line."""


# ---- functions ----

def path_of(function):
    """"torch.log": where a function of torch is found; None when it is nowhere to be found."""
    name = getattr(function, "__name__", "")
    for path, owner in _OWNERS:
        if name and getattr(owner, name, None) is function:
            return "%s.%s" % (path, name)
    return None


def function_at(path):
    """The operator of that path. CallError: there is none in this PyTorch."""
    owner_path, _, name = str(path).rpartition(".")
    for known, owner in _OWNERS:
        function = getattr(owner, name, None) if known == owner_path and name not in _NEVER else None
        if callable(function) and _is_operator(owner, name, function):
            return function
    raise CallError("PyTorch %s has no operator %s" % (torch.__version__, path))


def _is_operator(owner, name, function):
    """Whether a function computes with tensors and does nothing else: what a file says is called, after all."""
    if hasattr(torch._C._VariableFunctions, name) or owner in (torch.Tensor, torch._C._TensorBase, torch._C._nn):
        return True
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, (types.FunctionType, types.BuiltinFunctionType)) and (
        owner is not torch or module == "torch.functional")


def api_name(path, ordinal):
    """"Functional.linear.0": how ptdbg_ascend names the ordinal-th such call of a step."""
    owner, _, name = (path or "unknown").rpartition(".")
    return "%s.%s.%d" % (_PREFIXES.get(owner, "Functional"), name, ordinal)


# ---- tensors ----

def figures(tensor):
    """{"min", "max", "nan", "pos_inf", "neg_inf", "count"} of a tensor, min and max None when no element is finite.
    NoValue."""
    tensor = values.readable(tensor)
    record = cuda.device_stats(tensor)
    finite = record["count"] - record["nan"] - record["pos_inf"] - record["neg_inf"]
    return {"min": record["min"] if finite else None, "max": record["max"] if finite else None,
            **{name: record[name] for name in ("nan", "pos_inf", "neg_inf", "count")}}


def is_finite(found):
    """Whether figures() says that all elements are."""
    return not (found["nan"] or found["pos_inf"] or found["neg_inf"])


class Encoder:
    """Turns arguments into JSON values. tensors: datapath -> what lies there; refused: why not all can be called
    again; bytes: of the tensors.

    replaced: id(tensor) -> what to take in its place (its value before it was overwritten), or a text why
    there is nothing."""

    def __init__(self, replaced=None):
        self.tensors = {}
        self.refused = []
        self.bytes = 0
        self._replaced = replaced or {}

    def add(self, value, place, depth=0):
        """The JSON value of an argument; `place` ("input.0") names it."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, place)
        kind = _SCALARS.get(type(value))
        if kind is not None:
            return {"type": kind, "value": _plain(value)}
        if depth < _MAX_DEPTH and isinstance(value, (list, tuple, dict)) and len(value) <= _MAX_ITEMS:
            return self._nested(value, place, depth + 1)
        return self._other(value, place)

    def _nested(self, value, place, depth):
        if isinstance(value, torch.Size):
            return {"type": "torch.Size", "value": [int(item) for item in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                self.refused.append("%s has keys that are no texts, which cannot be kept" % place)
            return {"type": "dict", "value": {str(key): self.add(item, "%s.%s" % (place, _file_word(key)), depth)
                                              for key, item in value.items()}}
        items = [self.add(item, "%s.%d" % (place, i), depth) for i, item in enumerate(value)]
        return items if type(value) is list else {"type": "tuple", "value": items}

    def _other(self, value, place):
        if value is Ellipsis:
            return {"type": "ellipsis"}
        if isinstance(value, slice):
            return {"type": "slice", "value": [_index(part) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, complex):
            return {"type": "complex", "value": [_plain(value.real), _plain(value.imag)]}
        for kind in ("dtype", "device", "layout", "memory_format"):
            if isinstance(value, getattr(torch, kind)):
                return {"type": "torch." + kind, "value": str(value)}
        if isinstance(value, torch.Generator):
            return {"type": "torch.Generator", "value": None}
        if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            return {"type": "numpy." + type(value).__name__, "value": _plain(value.item())}
        self.refused.append("%s is a %s, which cannot be kept" % (place, type(value).__name__))
        return {"type": type(value).__name__, "value": None}

    def _tensor(self, tensor, place):
        found = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape),
                 "requires_grad": bool(tensor.requires_grad), "device": str(tensor.device)}
        taken = self._replaced.get(id(tensor), tensor)
        try:
            if isinstance(taken, str):
                raise values.NoValue(taken)
            taken = values.readable(taken)
            numbers = figures(taken)
        except (values.NoValue, RuntimeError) as error:
            why = str(error).split("\n", 1)[0]
            self.refused.append("%s: %s" % (place, why))
            return dict(found, note=why)
        stored = npy.stored_as(tensor.dtype)
        if taken.dtype != tensor.dtype:  # float8, shown as float32
            stored = npy.stored_as(taken.dtype)
        found.update(Max=_plain(numbers["max"]), Min=_plain(numbers["min"]), nan=numbers["nan"],
                     pos_inf=numbers["pos_inf"], neg_inf=numbers["neg_inf"], stored=stored, datapath=self._file(place))
        note = values.note(tensor)
        if note:
            found["note"] = note
        self.tensors[found["datapath"]] = taken
        self.bytes += taken.numel() * taken.element_size()
        return found

    def _file(self, place):
        """A name that no other tensor has: words of different keys may be alike."""
        name, count = place + ".npy", 1
        while name in self.tensors:
            count += 1
            name = "%s-%d.npy" % (place, count)
        return name

    def to_host(self):
        """Replaces the tensors by copies of their own in host memory."""
        for place, tensor in self.tensors.items():
            if tensor.device.type == "cpu":
                self.tensors[place] = tensor.clone(memory_format=torch.contiguous_format)
            else:
                self.tensors[place] = cuda.to_host(tensor)


def _index(part):
    return part if part is None else int(part)


def _file_word(key):
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in str(key))[:64]


def _plain(value):
    """A scalar as JSON can write it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    return value


def tensors_of(element):
    """The tensors among JSON values, in order."""
    if isinstance(element, list):
        for item in element:
            yield from tensors_of(item)
    elif isinstance(element, dict):
        if element.get("type") == "torch.Tensor":
            yield element
        elif element.get("type") in ("tuple", "dict"):
            value = element["value"]
            yield from tensors_of(list(value.values()) if isinstance(value, dict) else value)


def has_nonfinite_scalar(value, depth=0):
    """Whether a number among arguments is infinite or NaN: the user's own intention, then."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and len(value) <= _MAX_ITEMS:
        return any(has_nonfinite_scalar(item, depth + 1) for item in value)
    return depth < _MAX_DEPTH and isinstance(value, dict) and any(
        has_nonfinite_scalar(item, depth + 1) for item in value.values())


# ---- back again ----

class Decoder:
    """Turns JSON values into arguments. tensor(element): the tensor of one; dtype(dtype): what to take for a type
    that an argument names."""

    def __init__(self, tensor, dtype=lambda dtype: dtype):
        self._tensor = tensor
        self._dtype = dtype

    def value(self, element):
        """The argument. CallError."""
        if isinstance(element, list):
            return [self.value(item) for item in element]
        kind = element.get("type") if isinstance(element, dict) else None
        value = element.get("value") if isinstance(element, dict) else None
        try:
            if kind == "torch.Tensor":
                return self._tensor(element)
            return self._plain(kind, value)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
            raise CallError("an argument of type %s cannot be read: %s" % (kind, error))

    def _plain(self, kind, value):
        if kind in ("NoneType", "bool", "int", "str"):
            return value
        if kind == "float" or str(kind).startswith("numpy."):
            return float(value) if isinstance(value, str) or kind == "float" else value
        if kind == "complex":
            return complex(float(value[0]), float(value[1]))
        if kind == "tuple":
            return tuple(self.value(item) for item in value)
        if kind == "dict":
            return {key: self.value(item) for key, item in value.items()}
        if kind == "slice":
            return slice(*value)
        if kind == "ellipsis":
            return Ellipsis
        if kind == "torch.Size":
            return torch.Size(value)
        if kind == "torch.device":
            return torch.device("cpu")
        if kind == "torch.Generator":
            return None
        if kind in ("torch.dtype", "torch.layout", "torch.memory_format"):
            found = getattr(torch, value.rsplit(".", 1)[-1])
            if not isinstance(found, getattr(torch, kind.rsplit(".", 1)[-1])):
                raise CallError("%s is no %s" % (value, kind))
            return self._dtype(found) if kind == "torch.dtype" else found
        raise CallError("an argument of type %s cannot be given again" % kind)


# ---- a call with all that belongs to it ----

class Call:
    """What an overflow's record holds. about: what OWN_FILE says (number, step, node, phase, function, autocast,
    ...); arguments: {"args": [...], "kwargs": {...}} of the forward call, or None when that is not known; given: of
    a backward pass the gradients received; results: the outputs, or the gradients made; tensors: datapath -> tensor;
    refused: why it cannot be made again, in one line, or ""."""

    def __init__(self, about, arguments, given, results, tensors, refused=""):
        self.about = about
        self.arguments = arguments
        self.given = given
        self.results = results
        self.refused = refused
        self._tensors = tensors
        self._folder = None

    def tensor(self, element):
        """The tensor of a JSON value: the call's own, not to be written. CallError."""
        path = element.get("datapath")
        if path is None:
            raise CallError(element.get("note") or "the value of an argument was not kept")
        if self._folder is None:
            return self._tensors[path]
        try:
            found = npy.read(os.path.join(self._folder, path), callcheck.dtype_of(element["dtype"]))
        except (OSError, npy.NpyError) as error:
            raise CallError(str(error))
        if list(found.shape) != element["shape"]:
            raise CallError("%s is of another shape, %s, than its call says" % (path, tuple(found.shape)))
        return found

    def is_held(self):
        """Whether its tensors are in memory, rather than in the files of a folder."""
        return self._folder is None

    def save(self, folder, stack=()):
        """Writes it to a folder that must not be there yet: whole, or not at all. stack: texts. OSError."""
        with whole(folder) as part:
            for path, tensor in self._tensors.items():
                npy.write(os.path.join(part, path), cuda.to_host(tensor) if tensor.device.type != "cpu" else tensor)
            name = self.about["api"]
            if self.arguments is not None:
                _write_json(part, FORWARD_FILE, {name + ".forward": self.arguments})
            if self.given is not None:
                _write_json(part, BACKWARD_FILE, {name + ".backward": self.given})
            _write_json(part, STACK_FILE, {name: list(stack)})
            _write_json(part, OWN_FILE, dict(self.about, outputs=self.results, refused=self.refused))


@contextlib.contextmanager
def whole(folder):
    """A new folder to write into, which takes the name `folder` when all went well and is gone when not. What else
    lies there is left alone. OSError."""
    os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
    part = _new_folder(folder)
    try:
        yield part
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _new_folder(folder):
    """Makes one beside it, under a name that nobody has."""
    for count in range(_MAX_NAMES):
        part = "%s.%d-%d.part" % (folder, os.getpid(), count)
        try:
            os.mkdir(part)
            return part
        except FileExistsError:
            pass
    raise FileExistsError("%s: there are too many of that name" % part)


def _write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def load(folder):
    """The Call of a folder that save() wrote. CallError."""
    about = _read(folder, OWN_FILE)
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise CallError("%s is no call that this gradb wrote (format %.40s, version %.40s)" % (
            os.path.join(folder, OWN_FILE), about.get("format"), about.get("version")))
    _checked(folder, OWN_FILE, callcheck.check_about, about)
    arguments = given = None
    if os.path.exists(os.path.join(folder, FORWARD_FILE)):
        arguments = next(iter(_read(folder, FORWARD_FILE).values()), None)
        _checked(folder, FORWARD_FILE, callcheck.check_arguments, arguments)
    if os.path.exists(os.path.join(folder, BACKWARD_FILE)):
        given = next(iter(_read(folder, BACKWARD_FILE).values()), None)
        _checked(folder, BACKWARD_FILE, callcheck.check_given, "gradients", given)
    call = Call(about, arguments, given, about.pop("outputs"), {}, about.pop("refused", None) or "")
    call._folder = folder
    return call


def _read(folder, name):
    return _checked(folder, name, callcheck.read, os.path.join(folder, name))


def _checked(folder, name, function, *args):
    """What the function returns. CallError: what is wrong with the file."""
    try:
        return function(*args)
    except OSError as error:
        raise CallError("%s cannot be read: %s" % (os.path.join(folder, name), error.strerror or error))
    except ValueError as error:  # a name with a NUL
        raise CallError("%s cannot be read: %s" % (os.path.join(folder, name), error))
    except callcheck.WrongCall as error:
        raise CallError("%s: %s" % (os.path.join(folder, name), error))
