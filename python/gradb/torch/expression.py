# SPDX-License-Identifier: MIT
"""The arguments of an operator that raised, where its call has no frame: `table[src]`, `table.gather(0, src)`. Read
from the source of the expression (Python 3.11 and newer know its position) and the program's variables; none of the
program's code runs for it."""
import ast
import linecache
import types

import torch

_OWN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def raised(traceback):
    """(possible names of the operator, args, kwargs) of the expression that raised in a traceback's own frame. None
    when it is of another kind, or contains more than variables."""
    try:
        tree = ast.parse(_source(traceback), mode="eval").body
        if isinstance(tree, ast.Subscript):
            return ("getitem", "setitem"), (_value(tree.value, traceback), _value(tree.slice, traceback)), {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
            holder = _value(tree.func.value, traceback)
            before = (holder,) if type(holder) in _OWN_TENSORS else ()
            if before or isinstance(holder, types.ModuleType):
                return ((tree.func.attr,), before + tuple(_value(arg, traceback) for arg in tree.args),
                        {keyword.arg: _value(keyword.value, traceback) for keyword in tree.keywords})
    except (LookupError, SyntaxError, TypeError, ValueError):
        pass
    return None


def _source(traceback):
    """The source text of the expression."""
    code = traceback.tb_frame.f_code
    if not hasattr(code, "co_positions"):
        raise LookupError
    first, last, begin, end = list(code.co_positions())[traceback.tb_lasti // 2]
    if None in (first, last, begin, end):
        raise LookupError
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return "(%s)" % b"".join(lines).decode()


def _value(tree, traceback):
    """The value of a part of the expression. LookupError: it would have to be computed."""
    frame = traceback.tb_frame
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        return frame.f_locals[tree.id] if tree.id in frame.f_locals else frame.f_globals[tree.id]
    if isinstance(tree, (ast.Tuple, ast.List)):
        kind = tuple if isinstance(tree, ast.Tuple) else list
        return kind(_value(part, traceback) for part in tree.elts)
    if isinstance(tree, ast.Slice):  # nobody needs the bounds
        return slice(None)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) and isinstance(tree.operand, ast.Constant):
        return -tree.operand.value
    if isinstance(tree, ast.Attribute):
        return _attribute(_value(tree.value, traceback), tree.attr)
    if isinstance(tree, ast.Subscript):
        holder = _value(tree.value, traceback)
        if type(holder) in (dict, list, tuple) and isinstance(tree.slice, ast.Constant):
            return holder[tree.slice.value]
    raise LookupError


def _attribute(holder, name):
    """An attribute that is stored in the object. Properties are the program's code, and are not called."""
    if isinstance(holder, torch.nn.Module):
        for held in (holder._parameters, holder._buffers, holder._modules):
            if name in held:
                return held[name]
    return getattr(holder, "__dict__", {})[name]
