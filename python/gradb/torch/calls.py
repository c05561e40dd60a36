# SPDX-License-Identifier: MIT
"""A call of an operator as data: the function by name, the arguments in order, the tensors separately. So a call can
outlive the training's tensors, be written to a folder, read on another machine, and repeated.

An argument is a JSON value with the words of ptdbg_ascend's forward_info and backward_info: {"type": "int", "value":
3}, {"type": "torch.Tensor", "dtype", "shape", "Max", "Min", "requires_grad", "datapath"}, where datapath is the
tensor's file in the call's folder. Lists are lists; a tuple or dict is {"type": "tuple" | "dict", "value"}."""
import contextlib
import json
import math
import os
import shutil
import types

import torch

from . import call_check, device_stats, npy, values

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
_NEVER = frozenset(("from_file", "load", "save"))  # they read or write files


class CallError(Exception):
    """Why a call cannot be kept, read or repeated: one line."""


# ---- functions ----

def path_of(function):
    """"torch.log": the path of a function of PyTorch; None when it has none."""
    name = getattr(function, "__name__", "")
    for path, owner in _OWNERS:
        if name and getattr(owner, name, None) is function:
            return "%s.%s" % (path, name)
    return None


def function_at(path):
    """The operator at a path. CallError: this PyTorch has none there."""
    owner_path, _, name = str(path).rpartition(".")
    for known, owner in _OWNERS:
        function = getattr(owner, name, None) if known == owner_path and name not in _NEVER else None
        if callable(function) and _is_operator(owner, name, function):
            return function
    raise CallError("PyTorch %s has no operator %s" % (torch.__version__, path))


def _is_operator(owner, name, function):
    """Whether a function only computes with tensors: the name of what is called comes from a file."""
    if hasattr(torch._C._VariableFunctions, name) or owner in (torch.Tensor, torch._C._TensorBase, torch._C._nn):
        return True
    module = getattr(function, "__module__", None) or ""
    return isinstance(function, (types.FunctionType, types.BuiltinFunctionType)) and (
        owner is not torch or module == "torch.functional")


def api_name(path, ordinal):
    """"Functional.linear.0": the name that ptdbg_ascend gives to the ordinal-th such call of a step."""
    owner, _, name = (path or "unknown").rpartition(".")
    return "%s.%s.%d" % (_PREFIXES.get(owner, "Functional"), name, ordinal)


# ---- tensors ----

def stats_of(tensor):
    """{"min", "max", "nan", "pos_inf", "neg_inf", "count"} of a tensor; min and max are None when no element is finite.
    NoValue."""
    tensor = values.readable(tensor)
    record = device_stats.compute(tensor)
    finite = record["count"] - record["nan"] - record["pos_inf"] - record["neg_inf"]
    return {"min": record["min"] if finite else None, "max": record["max"] if finite else None,
            **{name: record[name] for name in ("nan", "pos_inf", "neg_inf", "count")}}


def is_finite(found):
    """Whether stats_of() found only finite elements."""
    return not (found["nan"] or found["pos_inf"] or found["neg_inf"])


class Encoder:
    """Turns arguments into JSON values.

    replaced: id(tensor) -> the tensor to take instead (its value before it was overwritten), or a text: why there is
    none.
    tensors: datapath -> tensor; bytes: their size; refused: why the call cannot be repeated, texts."""

    def __init__(self, replaced=None):
        self.tensors = {}
        self.refused = []
        self.bytes = 0
        self._replaced = replaced or {}

    def add(self, value, place, depth=0):
        """The JSON value of an argument; place: its name, such as "input.0"."""
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
                self.refused.append("%s has keys that are not strings, which cannot be kept" % place)
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
            numbers = stats_of(taken)
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
        """A file name that no other tensor has; different keys may have become alike."""
        name, count = place + ".npy", 1
        while name in self.tensors:
            count += 1
            name = "%s-%d.npy" % (place, count)
        return name

    def to_host(self):
        """Replaces the tensors by copies in host memory."""
        for place, tensor in self.tensors.items():
            if tensor.device.type == "cpu":
                self.tensors[place] = tensor.clone(memory_format=torch.contiguous_format)
            else:
                self.tensors[place] = device_stats.to_host(tensor)


def _index(part):
    return part if part is None else int(part)


def _file_word(key):
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in str(key))[:64]


def _plain(value):
    """A scalar as a JSON value."""
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
    """Whether a number among the arguments is infinite or NaN: then that is intended."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and len(value) <= _MAX_ITEMS:
        return any(has_nonfinite_scalar(item, depth + 1) for item in value)
    return depth < _MAX_DEPTH and isinstance(value, dict) and any(
        has_nonfinite_scalar(item, depth + 1) for item in value.values())


# ---- back again ----

class Decoder:
    """Turns JSON values into arguments. tensor(element): returns the tensor of a JSON value; dtype(dtype): returns the
    type to use for a type that an argument names."""

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
                raise CallError("%s is not a %s" % (value, kind))
            return self._dtype(found) if kind == "torch.dtype" else found
        raise CallError("an argument of type %s cannot be repeated" % kind)


# ---- a call with all that belongs to it ----

class Call:
    """One call with everything that belongs to it.

    about: the contents of OWN_FILE (number, step, node, phase, function, autocast, ...);
    arguments: {"args": [...], "kwargs": {...}} of the forward call; None: unknown;
    given: the gradients that a backward node received, or None; results: its outputs, or the gradients that it made;
    tensors: datapath -> tensor; refused: why it cannot be repeated, in one line, or ""."""

    def __init__(self, about, arguments, given, results, tensors, refused=""):
        self.about = about
        self.arguments = arguments
        self.given = given
        self.results = results
        self.refused = refused
        self._tensors = tensors
        self._folder = None

    def tensor(self, element):
        """The tensor of a JSON value, which belongs to the call: do not write to it. CallError."""
        path = element.get("datapath")
        if path is None:
            raise CallError(element.get("note") or "the value of an argument was not kept")
        if self._folder is None:
            return self._tensors[path]
        try:
            found = npy.read(os.path.join(self._folder, path), call_check.dtype_of(element["dtype"]))
        except (OSError, npy.NpyError) as error:
            raise CallError(str(error))
        if list(found.shape) != element["shape"]:
            raise CallError("the shape of %s is %s, not the one that its call names" % (path, tuple(found.shape)))
        return found

    def is_held(self):
        """Whether its tensors are in memory rather than in files."""
        return self._folder is None

    def save(self, folder, stack=()):
        """Writes the call to a new folder, completely or not at all. stack: texts. OSError."""
        with whole(folder) as part:
            for path, tensor in self._tensors.items():
                tensor = device_stats.to_host(tensor) if tensor.device.type != "cpu" else tensor
                npy.write(os.path.join(part, path), tensor)
            name = self.about["api"]
            if self.arguments is not None:
                _write_json(part, FORWARD_FILE, {name + ".forward": self.arguments})
            if self.given is not None:
                _write_json(part, BACKWARD_FILE, {name + ".backward": self.given})
            _write_json(part, STACK_FILE, {name: list(stack)})
            _write_json(part, OWN_FILE, dict(self.about, outputs=self.results, refused=self.refused))


@contextlib.contextmanager
def whole(folder):
    """A temporary folder to write into, which is renamed to `folder` at the end, or removed after an error. Nothing
    else there is touched. OSError."""
    os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
    part = _new_folder(folder)
    try:
        yield part
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _new_folder(folder):
    """Makes a temporary folder next to `folder`, under an unused name."""
    for count in range(_MAX_NAMES):
        part = "%s.%d-%d.part" % (folder, os.getpid(), count)
        try:
            os.mkdir(part)
            return part
        except FileExistsError:
            pass
    raise FileExistsError("%s: all names for temporary folders are used" % part)


def _write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def load(folder):
    """Reads the Call in a folder that save() wrote. CallError."""
    about = _read(folder, OWN_FILE)
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise CallError("%s was not written by this version of gradb (format %.40s, version %.40s)" % (
            os.path.join(folder, OWN_FILE), about.get("format"), about.get("version")))
    _checked(folder, OWN_FILE, call_check.check_about, about)
    arguments = given = None
    if os.path.exists(os.path.join(folder, FORWARD_FILE)):
        arguments = next(iter(_read(folder, FORWARD_FILE).values()), None)
        _checked(folder, FORWARD_FILE, call_check.check_arguments, arguments)
    if os.path.exists(os.path.join(folder, BACKWARD_FILE)):
        given = next(iter(_read(folder, BACKWARD_FILE).values()), None)
        _checked(folder, BACKWARD_FILE, call_check.check_given, "gradients", given)
    call = Call(about, arguments, given, about.pop("outputs"), {}, about.pop("refused", None) or "")
    call._folder = folder
    return call


def _read(folder, name):
    return _checked(folder, name, call_check.read, os.path.join(folder, name))


def _checked(folder, name, function, *args):
    """Returns what the function returns. CallError: what is wrong with the file."""
    try:
        return function(*args)
    except OSError as error:
        raise CallError("%s cannot be read: %s" % (os.path.join(folder, name), error.strerror or error))
    except ValueError as error:  # the name contains NUL
        raise CallError("%s cannot be read: %s" % (os.path.join(folder, name), error))
    except call_check.WrongCall as error:
        raise CallError("%s: %s" % (os.path.join(folder, name), error))
