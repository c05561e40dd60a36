# SPDX-License-Identifier: MIT
"""Lets gradb._native watch backward passes without Python: finds where the nodes of PyTorch's autograd engine have
their edges and hooks, and where tensors have what no function of libtorch returns.

Nothing is taken from a table of versions. Each place is found in objects that differ in nothing else, and all of them
together are tried on a pass; where anything is missing or found twice, passes are watched through Python's hooks, with
the same result. The order of a hook's virtual functions is read from PyTorch's own header."""
import ctypes
import os
import re
import struct

import torch

from .. import native
from . import values

_WORD = ctypes.sizeof(ctypes.c_void_p)
_NODE = object.__basicsize__  # in a grad_fn: the address of its node, after what all Python objects have
_NODE_WORDS = 48    # of a Node, those that are searched
_TENSOR_WORDS = 24  # of a TensorImpl
_WEAK = 1 << 32     # one weak reference, in its second word
_NONE = (0, 0, 0)   # a std::vector without elements
_HEADER = os.path.join("include", "torch", "csrc", "autograd", "function_hook.h")
_HOOK = re.compile(r"struct\s+(?:TORCH_API\s+)?FunctionPostHook\s*\{\s*virtual\s+~FunctionPostHook\(\)[^;]*;\s*"
                   r"virtual\s+variable_list\s+operator\(\)\(\s*const\s+variable_list&[^,]*,\s*"
                   r"const\s+variable_list&[^)]*\)\s*=\s*0;")
_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"  # THPVariable_Wrap(at::TensorBase const&)
_VERSION = "_ZN5torch8autograd4impl15version_counterERKN2at6TensorE"
_NUMBER = "_ZN2at15sequence_number4peekEv"
_GRADIENT = "_ZNK3c1010TensorImpl4gradEv"
_NO_TENSOR = "_ZN3c1019UndefinedTensorImpl10_singletonE"
_HOOK_TYPE = "_ZTIN5torch8autograd16FunctionPostHookE"
_MADE_BY = "_ZNK2at10TensorBase7grad_fnEv"
_NEW, _DELETE = "_Znwm", "_ZdlPv"  # operator new and operator delete
_memory = None  # this process's, as a file: reading a wrong address is an error there, and not the end


class _Unknown(Exception):
    """Something was not found, or not exactly once."""


def begin():
    """Begins it for the whole process. There is no end."""
    global _memory
    if not native.looks or _WORD != 8:
        return
    try:
        library = ctypes.CDLL(torch._C.__file__)  # with its dependencies
        with open("/proc/self/mem", "rb", buffering=0) as _memory, values.outside_training(), torch.enable_grad():
            native.module.know_nodes(*_find(library))
            if not _is_right():
                raise _Unknown
    except (_Unknown, AttributeError, OSError, RuntimeError):
        native.module.know_nodes()
    finally:
        _memory = None


def _find(library):
    """The arguments of know_nodes."""
    _read_header()
    function, edges, edge = _edges()
    hooks, python_hook = _hooks(function)
    usual, keys = _keys()
    functions = [_address(library, name) for name in (_WRAP, _NUMBER, _GRADIENT, _NEW, _DELETE, _MADE_BY, _HOOK_TYPE)]
    undefined = _address(library, _NO_TENSOR)
    _check_weak()
    places = (_NODE, _number(functions[1]), edges, hooks["pre"], hooks["tensor"], hooks["post"], edge,
              _leaf(hooks["post"]), keys, *_versions(library))
    return places, usual, undefined, python_hook, tuple(functions), torch._C._FunctionBase, _custom()


class _Custom(torch.autograd.Function):
    """A custom function, whose nodes are of a kind of their own."""

    @staticmethod
    def forward(ctx, x):
        """Another tensor."""
        return x.clone()


def _custom():
    """What a custom function returns."""
    return _Custom.apply(torch.zeros(3, device="cpu", requires_grad=True))


def _read_header():
    path = os.path.join(os.path.dirname(torch.__file__), _HEADER)
    with open(path, encoding="utf-8") as file:
        if len(_HOOK.findall(re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.DOTALL))) != 1:
            raise _Unknown


def _has(address, word):
    """Whether that word is there."""
    try:
        return _words(address, 1)[0] == word
    except OSError:
        return False


def _address(library, name):
    found = native.address(library, name)
    if not found:
        raise _Unknown
    return found


def _words(address, count):
    """What is there. OSError: nothing is."""
    try:
        found = os.pread(_memory.fileno(), count * _WORD, address)
    except OverflowError:
        found = b""
    if len(found) != count * _WORD:
        raise OSError("no memory at 0x%x" % address)
    return list(struct.unpack("%dQ" % count, found))


def _only(found):
    found = list(found)
    if len(found) != 1:
        raise _Unknown
    return found[0]


# ---- nodes ----

def _product():
    """A grad_fn with two edges, to accumulators."""
    left, right = (torch.zeros(3, device="cpu", requires_grad=True) for _ in range(2))
    return (left * right).grad_fn


def _node_of(function):
    return _words(id(function) + _NODE, 1)[0]


def _edges():
    """(a grad_fn, place of its edges, bytes of an edge). An edge begins with the address of a node."""
    function = _product()
    following = [_node_of(other) for other, _ in function.next_functions]
    words = _words(_node_of(function), _NODE_WORDS)
    found = []
    for i, (first, last, room) in enumerate(zip(words, words[1:], words[2:])):
        for size in (2 * _WORD, 3 * _WORD):
            if first and last - first == len(following) * size and room >= last and all(
                    _has(first + size * edge, node) for edge, node in enumerate(following)):
                found.append((function, i * _WORD, size))
    return _only(found)


def _hooks(function):
    """(the places of a node's hooks, by kind; the address of the virtual functions of Python's hooks). A place is what
    changes when one is registered on a node that has none."""
    node = _node_of(function)
    left = torch.zeros(3, device="cpu", requires_grad=True)
    result = left * left
    kinds = {"post": (node, lambda: function.register_hook(lambda *_: None)),
             "pre": (node, lambda: function.register_prehook(lambda *_: None)),
             "tensor": (_node_of(result.grad_fn), lambda: result.register_hook(lambda _: None))}
    found = {}
    for kind, (address, register) in kinds.items():
        before = _words(address, _NODE_WORDS)
        handle = register()
        after = _words(address, _NODE_WORDS)
        found[kind] = _only(i * _WORD for i in range(_NODE_WORDS - 2) if tuple(before[i:i + 3]) == _NONE
                            and 0 < after[i] == after[i + 1] - _WORD and after[i + 2] >= after[i + 1])
        if kind == "post":
            python_hook, held = _words(_words(after[found[kind] // _WORD], 1)[0], 2)
            if held != id(handle.hooks_dict_ref()):
                raise _Unknown
        handle.remove()
    if len(set(found.values())) != len(found):
        raise _Unknown
    return found, python_hook


def _number(next_number):
    """The place of a node's sequence number."""
    peek = ctypes.CFUNCTYPE(ctypes.c_uint64)(next_number)
    made = []
    for _ in range(8):  # for small numbers, other words may be equal by accident
        number, function = peek(), _product()
        if peek() != number + 1:
            raise _Unknown
        made.append((_words(_node_of(function), _NODE_WORDS), number))
    return _only(i * _WORD for i in range(_NODE_WORDS) if all(words[i] == number for words, number in made))


def _leaf(hooks):
    """The place of the tensor in an AccumulateGrad, which is the first address of it after a Node's hooks."""
    leaves = [torch.zeros(3, device="cpu", requires_grad=True) for _ in range(3)]
    results = [leaf * 2 for leaf in leaves]
    nodes = [_node_of(result.grad_fn.next_functions[0][0]) for result in results]
    place = hooks + len(_NONE) * _WORD
    for _ in range(_NODE_WORDS):
        if all(_words(node + place, 1)[0] == leaf._cdata for node, leaf in zip(nodes, leaves)):
            return place
        if any(_words(node + place, 1)[0] == leaf._cdata for node, leaf in zip(nodes, leaves)):
            break
        place += _WORD
    raise _Unknown


# ---- tensors ----

def _keys():
    """(keys that a plain tensor may have, their place): one bit is all by which a lazily negated view differs."""
    plain = torch.zeros(3, device="cpu")
    view, negated = (_words(tensor._cdata, _TENSOR_WORDS) for tensor in (plain.view(3), torch._neg_view(plain)))
    one_bit = [i for i in range(2, _TENSOR_WORDS)
               if bin(view[i] ^ negated[i]).count("1") == 1 and view[i] < 1 << 48 and view[i] & ~negated[i] == 0
               and view[i] > 1 << 20]
    place = _only(i for i in one_bit if view[i] == _words(plain._cdata, _TENSOR_WORDS)[i])
    usual = view[place] | _words(torch.zeros(3, device="cpu", requires_grad=True)._cdata, _TENSOR_WORDS)[place]
    return usual, place * _WORD


def _versions(library):
    """(place of a tensor's counter of writes, place of the number in it)."""
    counter = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(_address(library, _VERSION))
    tensor = torch.zeros(3, device="cpu")
    holder = ctypes.c_void_p(tensor._cdata)
    place = counter(ctypes.addressof(holder)) - tensor._cdata
    if not 0 < place < _TENSOR_WORDS * _WORD:
        raise _Unknown
    address = _words(tensor._cdata + place, 1)[0]
    seen = []
    for _ in range(3):
        tensor.add_(1)
        seen.append((tensor._version, struct.unpack("4I", struct.pack("2Q", *_words(address + _WORD, 2)))))
    return place, _WORD + 4 * _only(i for i in range(4) if all(words[i] == version for version, words in seen))


def _check_weak():
    """Weak references are counted in the upper half of a tensor's second word."""
    tensor = torch.zeros(3, device="cpu")
    before = _words(tensor._cdata, _TENSOR_WORDS)
    reference = torch._C._WeakTensorRef(tensor)
    after = _words(tensor._cdata, _TENSOR_WORDS)
    strong = before[1] & (_WEAK - 1)
    changed = [i for i in range(_TENSOR_WORDS) if before[i] != after[i]]
    if changed != [1] or after[1] - before[1] != _WEAK or not 0 < strong < 1 << 16 or reference.expired():
        raise _Unknown
    del reference
    if _words(tensor._cdata, 2)[1] != before[1]:
        raise _Unknown


# ---- trying it ----

def _is_right():
    """Whether all of it together finds what Python finds, and a hook is called with what Python's are called with."""
    given = torch.tensor([1.0, 2.0], device="cpu", requires_grad=True)
    other = torch.tensor([3.0, 5.0], device="cpu", requires_grad=True)
    result, custom = given * other, _custom()
    function = result.grad_fn
    following = [(_node_of(node), number) for node, number in function.next_functions]
    gradient = torch.tensor([7.0, 11.0], device="cpu")
    (node, edges, _, pre, hooks), seen = native.module.try_node(
        function, lambda: torch.autograd.backward(result, gradient, retain_graph=True))
    if (node, edges, pre, hooks) != (_node_of(function), following, False, 0) or len(seen) != 1:
        return False
    outputs, inputs = seen[0]
    wanted = [(7.0 * 3, 11.0 * 5), (7.0, 22.0)]
    makers = [native.module.made_by(tensor) for tensor in (result, given)]
    return (len(inputs) == 1 and inputs[0].tolist() == gradient.tolist()
            and [tuple(tensor.tolist()) for tensor in outputs] == wanted
            and [tuple(leaf.grad.tolist()) for leaf in (given, other)] == wanted
            and makers == [(_node_of(function), False), None] and native.module.made_by(custom)[1]
            and native.module.try_node(function, lambda: None)[0][-1] == 0)  # no hook is left
