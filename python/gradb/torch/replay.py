# SPDX-License-Identifier: MIT
"""Repeats a call of an operator on the CPU: as it was, in float32 and in float64. What is not finite in float64 either
comes from the values (the logarithm of 0); what is finite there comes from the type or the device.

It runs on a thread of its own, so that gradient mode, autocast and modes of the waiting thread stay as they are; the
state of the random generator is restored."""
import contextlib
import itertools
import math
import threading

import torch
from torch._C import _ImperativeEngine

from . import calls, values

_WIDE = {torch.float64: torch.complex128, torch.float32: torch.complex64}
_CASTS = frozenset(("half", "bfloat16", "float", "double", "type", "cfloat", "cdouble"))
_RANDOM = frozenset((
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "native_dropout",
    "feature_alpha_dropout", "rrelu", "gumbel_softmax", "bernoulli", "normal", "uniform", "randn", "rand", "randint",
    "randn_like", "rand_like", "randint_like", "multinomial", "poisson", "exponential", "cauchy", "log_normal",
    "geometric", "random", "randperm"))  # as _operator() names them: without underscores
# Operators in which an output element depends only on the input elements at the same place.
_ELEMENTWISE = frozenset(
    "add sub mul div truediv true_divide floordiv floor_divide pow exp exp2 expm1 log log2 log10 log1p sqrt "
    "rsqrt reciprocal square neg negative abs where clamp sigmoid tanh relu gelu silu softplus logit lerp "
    "addcmul fmod mod remainder atan2 lgamma digamma erfinv asin addcdiv arcsin acos arccos acosh arccosh atanh "
    "arctanh tan masked_fill sinh cosh half bfloat16 float to xlogy hypot logaddexp ldexp float_power "
    "special_xlog1py nan_to_num iadd isub imul idiv itruediv ipow radd rsub rmul rtruediv rpow rdiv multiply "
    "divide subtract".split())
_MAX_PLACES = 3  # elements that are reported one by one
_COPIES = 3      # of all inputs and outputs, in float64, that may be in memory at the same time
_engine_lock = threading.Lock()


class _OtherCall(calls.CallError):
    """The known forward call is not that of the backward node."""


def _stats_of(tensor):
    try:
        return None if tensor is None else calls.stats_of(tensor)
    except values.NoValue:
        return None


class Run:
    """The result of one run. outputs: tensors, None where there is none; error: why there are none, or ""."""

    def __init__(self, name, outputs, error=""):
        self.name = name
        self.outputs = outputs
        self.error = error
        self.stats = [_stats_of(tensor) for tensor in outputs]

    def is_finite(self):
        """Whether all outputs are finite; None when there are none."""
        if self.error or not any(self.stats):
            return None
        return all(calls.is_finite(found) for found in self.stats if found is not None)

    def largest(self):
        """The largest magnitude of a finite element."""
        ends = [abs(found[end]) for found in self.stats if found is not None for end in ("min", "max")
                if found[end] is not None]
        return max(ends, default=0.0)

    def told(self):
        """The run as JSON."""
        found = {"as": self.name, "outputs": [record for record in self.stats if record is not None]}
        return dict(found, error=self.error) if self.error else found


def rerun(call):
    """{"verdict": "inherent" | "dtype" | "device" | "unknown", "text": one line, "runs": [...], "places": [...]} of a
    calls.Call. Leaves the state of the random generator as it was."""
    answer = {}
    thread = threading.Thread(target=_guarded, args=(call, answer), name="gradb-rerun", daemon=True)
    thread.start()
    thread.join()
    if isinstance(answer.get("error"), BaseException):
        raise answer["error"]
    return answer["reply"]


def _guarded(call, answer):
    state = torch.get_rng_state()
    anomaly = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    try:
        torch.set_anomaly_enabled(False)
        with torch._C.DisableTorchFunction():
            answer["reply"] = _judge(call)
    except Exception as error:  # raised again by the waiting thread
        answer["error"] = error
    finally:
        torch.set_anomaly_enabled(*anomaly)
        torch.set_rng_state(state)


def _judge(call):
    why = _refusal(call) or _too_large(call)
    if why:
        return {"verdict": "unknown", "text": "it cannot be repeated: " + why, "runs": [], "places": []}
    try:
        same = _run(call, "as it was, on the CPU", None)
    except _OtherCall as error:
        return {"verdict": "unknown", "text": "it cannot be repeated: %s" % error, "runs": [], "places": []}
    runs = [same, _run(call, "float32", torch.float32),
            _run(call, "float64", torch.float64)]
    verdict, text = _verdict(call, *runs)
    name = _operator(call)
    if name in _RANDOM:
        text += "; it draws random numbers, which differ in each run"
    places = [] if verdict == "unknown" else _places(call, runs[2], verdict == "inherent")
    return {"verdict": verdict, "text": text, "runs": [run.told() for run in runs], "places": places}


def _refusal(call):
    if call.refused:
        return call.refused
    if call.about.get("function") is None or call.arguments is None:
        return call.about.get("why") or "the call is unknown"
    return ""


def _too_large(call):
    """Why there is too little memory to repeat it beside the training; "" where there is enough. The shapes in a folder
    are only believed when its files are read."""
    if not call.is_held():
        return ""
    needed = 8 * _COPIES * (_elements(call.arguments) + _elements(call.given) + _elements(call.results))
    free = _free_bytes()
    if free is None or needed <= free // 2:
        return ""
    return "in float64 it needs up to %.3g GiB, but only %.3g GiB of memory are free" % (
        needed / 2 ** 30, free / 2 ** 30)


def _elements(value):
    """The number of elements of all tensors in the JSON of a call."""
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and item.get("type") == "torch.Tensor":
            count += math.prod(item["shape"])
        elif isinstance(item, (dict, list, tuple)):
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return count


def _free_bytes():
    """The bytes that the host can give without taking them from others; None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = next((line.split() for line in file if line.startswith("MemAvailable:")), None)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _operator(call):
    return call.about["function"].rsplit(".", 1)[-1].strip("_")


# ---- one run ----

def _run(call, name, dtype):
    """Runs the call with all floats as `dtype`; None: as they were."""
    try:
        with _autocast(call if dtype is None else None):
            outputs = _outputs(call, dtype)
    except _OtherCall:
        raise
    except calls.CallError as error:
        return Run(name, (), str(error))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, MemoryError) as error:
        return Run(name, (), "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0]))
    return Run(name, outputs)


def _autocast(call):
    given = call.about.get("autocast") if call is not None else None
    if not given:
        return contextlib.nullcontext()
    dtype = getattr(torch, given["dtype"].rsplit(".", 1)[-1])
    return torch.autocast("cpu", dtype=dtype)


def _outputs(call, dtype):
    backward = call.given is not None
    leaves = []

    def tensor(element):
        made = call.tensor(element).detach()
        made = made.clone() if dtype is None else made.to(_as(made.dtype, dtype), copy=True)
        if backward and element.get("requires_grad") and (made.is_floating_point() or made.is_complex()):
            leaves.append(made.requires_grad_())
            return made.view_as(made)  # a leaf cannot be written in place
        return made

    decoder = calls.Decoder(tensor, (lambda given: _as(given, dtype)) if dtype is not None else (lambda given: given))
    args = decoder.value(call.arguments["args"])
    kwargs = {key: decoder.value(item) for key, item in call.arguments["kwargs"].items()}
    with torch.enable_grad() if backward else torch.no_grad():
        result = _call(call.about["function"], args, kwargs, dtype)
    found = []
    _collect(result, found)
    return _gradients(call, found, leaves, dtype) if backward else found


def _call(path, args, kwargs, dtype):
    function = calls.function_at(path)
    name = path.rsplit(".", 1)[-1].strip("_")
    if dtype is not None and name in _CASTS:
        return args[0]
    if kwargs.get("generator", 0) is None:
        del kwargs["generator"]
    result = function(*args, **kwargs)
    return args[0] if name == "setitem" else result


def _as(given, dtype):
    """The type that replaces `given`, as wide as `dtype`; integers stay."""
    if given.is_complex:
        return _WIDE[dtype]
    return dtype if given.is_floating_point else given


def _collect(value, found, depth=0):
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)) and depth < 8:
        for item in value:
            _collect(item, found, depth + 1)


def _gradients(call, outputs, leaves, dtype):
    """The gradients of the leaves, directly from the engine: no hooks see it."""
    root = next((output.grad_fn for output in outputs if output.grad_fn is not None), None)
    if root is None or not leaves:
        raise calls.CallError("it has no gradient")
    if dtype is None and not _leads_to(root, call.about.get("grad_fn")):
        raise _OtherCall("the forward call of %s is unknown" % call.about["grad_fn"])
    tensors, gradients = [], []
    for output in outputs:
        if output.grad_fn is not root or output.output_nr >= len(call.given):
            continue
        given = call.given[output.output_nr]
        if given.get("type") == "torch.Tensor":
            made = call.tensor(given).detach()
            tensors.append(output)
            gradients.append(made.to(output.dtype if dtype is None else _as(made.dtype, dtype)).reshape(output.shape))
    if not tensors:
        raise calls.CallError("the gradients that it received are unknown")
    with _engine_lock:
        return _ImperativeEngine().run_backward(tuple(tensors), tuple(gradients), False, False, tuple(leaves), True,
                                                False)


def _leads_to(root, name):
    """Whether a grad_fn of type `name` is at or below the root; True where `name` is empty."""
    waiting, seen = [root], set()
    while waiting and name:
        grad_fn = waiting.pop()
        if grad_fn.name().rsplit("::", 1)[-1] == name:
            return True
        seen.add(grad_fn)
        waiting.extend(following for following, _ in grad_fn.next_functions
                       if following is not None and following not in seen)
    return not name


# ---- what it says ----

def _verdict(call, same, single, double):
    if double.is_finite() is None:
        return "unknown", "in float64 it fails: %s" % (double.error or "it returns no numbers")
    if not double.is_finite():
        return "inherent", "not finite in float64 either: the cause is in the values%s" % _why_inherent(call)
    types = {element["dtype"] for element in call.results if element and element.get("type") == "torch.Tensor"}
    scale = call.about.get("scale", 1.0)
    scaled = ", the gradients are scaled by %g" % scale if scale != 1.0 else ""
    limits = sorted((torch.finfo(dtype).max, name) for name, dtype in _floats(types))
    for limit, name in limits:
        if double.largest() > limit:
            return "dtype", "%s-specific: the largest magnitude is %.4g, above the %.6g of %s%s" % (
                name, double.largest(), limit, name, scaled)
    names = " and ".join(name for _, name in limits) or "its type"
    if same.is_finite() and call.about.get("device", "cpu") != "cpu":
        return "device", "%s-specific: on the CPU it is finite in %s too (at most %.4g)" % (
            call.about["device"], names, same.largest())
    if same.is_finite():
        return "unknown", "finite when repeated, as it was and in float64 (at most %.4g)" % double.largest()
    if same.is_finite() is None:
        return "unknown", ("unknown whether it is the type or the device: the call itself fails on the CPU "
                           "(%s); in float64 it is finite, at most %.4g" % (
                               same.error or "it returns no numbers", double.largest()))
    inside = {True: "float32 is enough", False: "float32 is not enough either"}.get(
        single.is_finite(), "in float32 it fails")
    return "dtype", "%s-specific: finite in float64 (at most %.4g), it overflows inside the operator; %s%s" % (
        names, double.largest(), inside, scaled)


def _floats(types):
    for text in types:
        dtype = getattr(torch, text.rsplit(".", 1)[-1], None)
        if dtype is not None and (dtype.is_floating_point or dtype.is_complex):
            yield text.rsplit(".", 1)[-1], dtype


_LOG, _DIVISION = "the logarithm of 0 or less", "a division by 0"
_INHERENT = {"log": _LOG, "log2": _LOG, "log10": _LOG, "xlogy": _LOG,
             "div": _DIVISION, "truediv": _DIVISION, "true_divide": _DIVISION, "reciprocal": _DIVISION,
             "sqrt": "the square root of a negative number", "rsqrt": "the reciprocal square root of 0 or less"}


def _why_inherent(call):
    if call.given is not None:
        return ""
    known = _INHERENT.get(_operator(call))
    return " (%s)" % known if known is not None else ""


def _places(call, run, inherent):
    """The first elements that are not finite (in float64 when it is inherent, else in the training): {"output",
    "index", "value", "float64", "inputs"}."""
    found, left = [], [tensor for tensor in run.outputs if tensor is not None]
    for number, element in enumerate(call.results):
        if len(found) >= _MAX_PLACES or not element or element.get("type") != "torch.Tensor":
            continue
        shape = tuple(element["shape"])
        wide = next((tensor for tensor in left if tuple(tensor.shape) == shape), None)
        left = [tensor for tensor in left if tensor is not wide]
        tensor = _result(call, element)
        suspect = wide if inherent or tensor is None else tensor
        if suspect is None or not (suspect.is_floating_point() or suspect.is_complex()):
            continue
        for index in itertools.islice(_not_finite(suspect), _MAX_PLACES - len(found)):
            place = {"output": number, "index": index}
            place.update((name, _number(which[tuple(index)])) for name, which in (("value", tensor), ("float64", wide))
                         if which is not None)
            found.append(dict(place, inputs=_inputs_at(call, shape, index)))
    return found


def _result(call, element):
    try:
        return call.tensor(element)
    except calls.CallError:
        return None


def _not_finite(tensor):
    """Yields the indices of the elements that are not finite, in order."""
    flat = (~torch.isfinite(tensor.detach())).reshape(-1)
    at = 0
    while at < flat.numel():
        rest = flat[at:]
        step = int(rest.to(torch.uint8).argmax())
        if not bool(rest[step]):
            return
        at += step
        index, left = [], at
        for size in reversed(tensor.shape):
            index.append(left % size)
            left //= size
        yield index[::-1]
        at += 1


def _inputs_at(call, shape, index):
    """The operator's inputs for one element, where that can be said: {"argument", "value"}."""
    if _operator(call) not in _ELEMENTWISE:
        return []
    found = []
    named = [("input.%d" % i, element) for i, element in enumerate(call.arguments["args"])]
    named += [("input." + key, element) for key, element in call.arguments["kwargs"].items()]
    if call.given is not None:
        named += [("gradient.%d" % i, element) for i, element in enumerate(call.given) if element]
    for name, element in named:
        if not isinstance(element, dict) or element.get("type") != "torch.Tensor" or "datapath" not in element:
            continue
        at = _broadcast_index(element["shape"], shape, index)
        if at is None:
            return []
        found.append({"argument": name, "value": _number(call.tensor(element)[tuple(at)])})
    return found


def _broadcast_index(own, whole, index):
    """The index in a tensor of shape `own` that broadcasts to `index` of shape `whole`; None: there is none."""
    if len(own) > len(whole):
        return None
    at = []
    for size, length, place in zip(own[::-1], list(whole)[::-1], index[::-1]):
        if size not in (1, length):
            return None
        at.append(0 if size == 1 else place)
    return at[::-1]


def _number(element):
    value = element.item()
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return value
