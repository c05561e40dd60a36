# SPDX-License-Identifier: MIT
"""libgradb by ctypes: the only file that knows its structs and functions (src/agent/gradb.h).

The library is looked for at GRADB_LIBRARY (a path), next to this package, in the tree that this package was installed
with (PREFIX/share/gradb/python), in the interpreter's own environment, and then by the loader. Calls release the
interpreter lock, so a training thread that waits in one holds up no other thread."""
import ctypes
import glob
import os
import sys

WHY_BYTES = 160
MAX_RANK = 32

# enum gradb_dtype
BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 = range(1, 10)
FLOAT16, FLOAT32, FLOAT64 = 10, 11, 12
BFLOAT16, COMPLEX64, COMPLEX128 = 14, 15, 16
# enum gradb_kind
AUTO, OTHER, WEIGHT, GRADIENT, ACTIVATION, PARAMETER, CONSTANT, COMPILED = range(8)
# enum gradb_phase
NO_PHASE, FORWARD, BACKWARD, OPTIMIZER = range(4)
# bits of gradb_wants
WANT_RUN, WANT_VALUE, WANT_IF_NOT_FINITE = 1, 2, 4
# enum gradb_answer
OK, NO_VALUE, UNSUPPORTED, FAILED, GONE = range(5)
# enum gradb_slice_kind
SLICE_INDEX, SLICE_RANGE, SLICE_ELLIPSIS, SLICE_NEWAXIS = range(4)


class Tensor(ctypes.Structure):
    """struct gradb_tensor: strides in bytes; data None: libgradb asks the source for it."""
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


class Words(ctypes.Structure):
    """struct gradb: the words that the handle points to. armed: 0 while nobody wants reports of nodes; changes: a new
    number whenever an answer of gradb_wants may have changed."""
    _fields_ = [("armed", ctypes.c_int), ("changes", ctypes.c_uint)]


class Input(ctypes.Structure):
    _fields_ = [("node", ctypes.c_uint32), ("slot", ctypes.c_uint), ("control", ctypes.c_bool)]


class Attr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Frame(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("line", ctypes.c_int), ("function", ctypes.c_char_p),
                ("library", ctypes.c_bool)]


class NodeInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("kind", ctypes.c_int),
                ("phase", ctypes.c_int), ("inputs", ctypes.POINTER(Input)), ("input_count", ctypes.c_size_t),
                ("outputs", ctypes.POINTER(Tensor)), ("output_count", ctypes.c_size_t),
                ("attrs", ctypes.POINTER(Attr)), ("attr_count", ctypes.c_size_t),
                ("frames", ctypes.POINTER(Frame)), ("frame_count", ctypes.c_size_t)]


class Stats(ctypes.Structure):
    """struct gradb_stats."""
    _fields_ = ([(name, ctypes.c_uint64) for name in ("count", "nan", "pos_inf", "neg_inf", "zero", "neg_zero",
                                                      "positive", "negative", "denormal")]
                + [(name, ctypes.c_double) for name in ("min", "max", "mean", "abs_mean", "sum_sq", "std")]
                + [("in_range", ctypes.c_uint64 * 16), ("has_previous", ctypes.c_bool)]
                + [(name, ctypes.c_double) for name in ("mean_abs_delta", "max_abs_delta", "mean_abs_previous",
                                                        "dot", "sum_sq_previous", "mean_delta", "sum_sq_delta")]
                + [("mismatch", ctypes.c_uint64), ("unpaired", ctypes.c_uint64),
                   ("histogram", ctypes.POINTER(ctypes.c_uint64))])


class StatsWanted(ctypes.Structure):
    """struct gradb_stats_wanted."""
    _fields_ = [("range_count", ctypes.c_int), ("range_lo", ctypes.c_double * 16),
                ("range_hi", ctypes.c_double * 16), ("against_previous", ctypes.c_bool),
                ("equal_nan", ctypes.c_bool), ("rtol", ctypes.c_double), ("atol", ctypes.c_double),
                ("bins", ctypes.c_uint), ("bins_lo", ctypes.c_double), ("bins_hi", ctypes.c_double)]


WHY = ctypes.POINTER(ctypes.c_char)
LOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint, ctypes.c_bool,
                          ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_int64), WHY)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
STATS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint, ctypes.c_bool,
                         ctypes.POINTER(StatsWanted), ctypes.POINTER(Stats), ctypes.POINTER(Tensor), WHY)
KEEP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_size_t)
COMMAND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32,
                           ctypes.POINTER(ctypes.c_char_p), WHY)


class SliceItem(ctypes.Structure):
    """struct gradb_slice_item: x[start], x[start:stop:step], x[...] or x[None]."""
    _fields_ = [("kind", ctypes.c_int), ("has_start", ctypes.c_bool), ("has_stop", ctypes.c_bool),
                ("start", ctypes.c_int64), ("stop", ctypes.c_int64), ("step", ctypes.c_int64)]


LOCATE_PART = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint, ctypes.c_bool,
                               ctypes.POINTER(SliceItem), ctypes.c_size_t, ctypes.POINTER(Tensor),
                               ctypes.POINTER(ctypes.c_int64), WHY)


class Line(ctypes.Structure):
    """struct gradb_line."""
    _fields_ = [("id", ctypes.c_uint), ("file", ctypes.c_char_p), ("line", ctypes.c_int),
                ("function", ctypes.c_char_p)]


LINES = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Line), ctypes.c_size_t)


class Ask(ctypes.Structure):
    """struct gradb_ask: a value that the source is going to be asked for."""
    _fields_ = [("node", ctypes.c_uint32), ("slot", ctypes.c_uint), ("wanted", ctypes.POINTER(StatsWanted))]


LOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Ask), ctypes.c_size_t)


class Source(ctypes.Structure):
    """struct gradb_source: answers the debugger's questions about values."""
    _fields_ = [("ctx", ctypes.c_void_p), ("locate", LOCATE), ("release", RELEASE), ("stats", STATS),
                ("keep", KEEP), ("command", COMMAND), ("locate_part", LOCATE_PART), ("lines", LINES)]


class Options(ctypes.Structure):
    _fields_ = [("framework", ctypes.c_char_p), ("framework_version", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("program", ctypes.c_char_p), ("graph", ctypes.c_char_p),
                ("rank", ctypes.c_int), ("world_size", ctypes.c_int), ("address", ctypes.c_char_p),
                ("token", ctypes.c_char_p), ("source", ctypes.POINTER(Source))]


class OpTime(ctypes.Structure):
    _fields_ = [("node", ctypes.c_uint32), ("calls", ctypes.c_uint32), ("seconds", ctypes.c_double)]


class Times(ctypes.Structure):
    """struct gradb_times: seconds; negative: unknown."""
    _fields_ = ([(name, ctypes.c_double) for name in ("total", "data", "forward", "backward", "optimizer", "gap")]
                + [("ops", ctypes.POINTER(OpTime)), ("op_count", ctypes.c_size_t)])


class Batch(ctypes.Structure):
    """struct gradb_batch: outputs and labels of one call of a loss."""
    _fields_ = [("outputs", ctypes.POINTER(Tensor)), ("labels", ctypes.POINTER(Tensor)), ("pair", ctypes.c_int),
                ("has_ignore", ctypes.c_bool), ("ignore", ctypes.c_int64), ("evaluation", ctypes.c_bool),
                ("loss", ctypes.POINTER(ctypes.c_double))]


class OpenMP(ctypes.Structure):
    """gradb_openmp: the addresses of its functions."""
    _fields_ = [("parallel", ctypes.c_void_p), ("max_threads", ctypes.c_void_p), ("in_parallel", ctypes.c_void_p)]


_HANDLE = ctypes.c_void_p
_FUNCTIONS = {
    "gradb_open": (_HANDLE, [ctypes.POINTER(Options)]),
    "gradb_close": (None, [_HANDLE, ctypes.c_char_p]),
    "gradb_wait": (ctypes.c_bool, [_HANDLE, ctypes.c_double]),
    "gradb_is_connected": (ctypes.c_bool, [_HANDLE]),
    "gradb_error": (ctypes.c_char_p, [_HANDLE]),
    "gradb_add_node": (ctypes.c_uint32, [_HANDLE, ctypes.POINTER(NodeInfo)]),
    "gradb_add_inputs": (None, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(Input), ctypes.c_size_t]),
    "gradb_bind": (None, [_HANDLE, ctypes.c_uint32, ctypes.c_uint, ctypes.POINTER(Tensor)]),
    "gradb_lasts": (None, [_HANDLE, ctypes.c_uint32]),
    "gradb_publish": (None, [_HANDLE]),
    "gradb_sync": (ctypes.c_bool, [_HANDLE]),
    "gradb_wants": (ctypes.c_uint, [_HANDLE, ctypes.c_uint32]),
    "gradb_step_begin": (None, [_HANDLE, ctypes.c_int64]),
    "gradb_step_end": (None, [_HANDLE]),
    "gradb_enter": (None, [_HANDLE, ctypes.c_int]),
    "gradb_did_slow": (None, [_HANDLE, ctypes.c_uint32]),
    # The tensors by their address: the fastest way through ctypes, for the function that is called most.
    "gradb_did_with_slow": (None, [_HANDLE, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]),
    "gradb_stop": (None, [_HANDLE, ctypes.c_char_p]),
    "gradb_scalar": (None, [_HANDLE, ctypes.c_char_p, ctypes.c_double]),
    "gradb_event": (None, [_HANDLE, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32]),
    "gradb_timing": (None, [_HANDLE, ctypes.POINTER(Times)]),
    "gradb_log": (None, [_HANDLE, ctypes.c_char_p]),
    "gradb_wants_stop": (ctypes.c_bool, [_HANDLE]),
    "gradb_wants_checkpoint": (ctypes.c_bool, [_HANDLE]),
}
# Added later: missing in an older library.
_ADDED = {
    "gradb_as_of": (None, [_HANDLE, ctypes.c_int64]),
    "gradb_happened": (None, [_HANDLE, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p]),
    "gradb_given_up": (ctypes.c_bool, [_HANDLE]),
    "gradb_heed": (None, [_HANDLE]),
    "gradb_line_found": (None, [_HANDLE, ctypes.c_uint, ctypes.POINTER(Frame), ctypes.c_size_t, ctypes.c_char_p]),
    "gradb_line_reached": (None, [_HANDLE, ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t, ctypes.POINTER(Frame),
                                  ctypes.c_size_t]),
    "gradb_momentary": (None, [_HANDLE, ctypes.c_uint32]),
    "gradb_on_look": (None, [_HANDLE, LOOK, ctypes.c_void_p]),
    "gradb_raised": (None, [_HANDLE, ctypes.c_uint32, ctypes.c_char_p]),
    "gradb_set_inputs": (None, [_HANDLE, ctypes.c_uint32, ctypes.POINTER(Input), ctypes.c_size_t]),
    "gradb_set_attr": (None, [_HANDLE, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p]),
    "gradb_use_openmp": (None, [_HANDLE, ctypes.POINTER(OpenMP)]),
    "gradb_wants_event": (ctypes.c_bool, [_HANDLE, ctypes.c_char_p]),
    "gradb_wants_numbers": (ctypes.c_bool, [_HANDLE]),
    "gradb_wants_new": (ctypes.c_bool, [_HANDLE]),
    "gradb_wants_at_end": (ctypes.c_bool, [_HANDLE, ctypes.c_uint32]),
    "gradb_metric": (ctypes.c_int, [_HANDLE, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]),
    "gradb_metric_batch": (ctypes.c_bool, [_HANDLE, ctypes.c_char_p, ctypes.POINTER(Batch)]),
    "gradb_metric_evaluated": (None, [_HANDLE]),
    "gradb_timing_facts": (None, [_HANDLE, ctypes.c_char_p]),
    "gradb_timing_compiled": (None, [_HANDLE, ctypes.c_double]),
    "gradb_stop_at": (None, [_HANDLE, ctypes.c_uint32, ctypes.c_char_p]),
}


_NAME = "libgradb.so.1"
_INSTALLED = os.path.join(os.sep, "share", "gradb", "python", "gradb")


def candidates():
    """The paths and names to try, in order."""
    given = os.environ.get("GRADB_LIBRARY")
    if given:
        return [given]
    here = os.path.dirname(os.path.abspath(__file__))
    found = [os.path.join(here, _NAME)]
    if here.endswith(_INSTALLED):
        prefix = here[:-len(_INSTALLED)]
        found += glob.glob(os.path.join(glob.escape(prefix), "lib*", _NAME))
        found += glob.glob(os.path.join(glob.escape(prefix), "lib", "*", _NAME))
    found.append(os.path.join(sys.prefix, "lib", _NAME))
    return [path for path in found if os.path.exists(path)] + [_NAME]


class _Found(ctypes.Structure):
    """Dl_info of dladdr."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def where(name):
    """The path of what the loader finds by that name, where the system can say; "": nothing."""
    found = _Found()
    try:
        function = ctypes.CDLL(name).gradb_open
        told = ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found))
    except (OSError, AttributeError):  # no such library, or no dladdr
        return ""
    return os.fsdecode(found.file) if told else ""


def load():
    """Loads the library and declares its functions. OSError: it could not be loaded; says what was tried."""
    reasons = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(library, name)
                function.restype = result
                function.argtypes = arguments
        except AttributeError as error:
            reasons.append("it is too old: %s" % error)  # the error names path and function
            continue
        for name, (result, arguments) in _ADDED.items():
            function = getattr(library, name, None)
            if function is not None:
                function.restype, function.argtypes = result, arguments
        return library
    raise OSError("cannot load libgradb (%s); set GRADB_LIBRARY to its path" % "; ".join(reasons))


def use_openmp(library, handle, user):
    """Has the threads of OpenMP share the work on large values; user: the path of a library that computes with them."""
    try:
        use, functions = library.gradb_use_openmp, ctypes.CDLL(user)
        found = [ctypes.cast(getattr(functions, name), ctypes.c_void_p).value
                 for name in ("GOMP_parallel", "omp_get_max_threads", "omp_in_parallel")]
    except (OSError, AttributeError):  # an older libgradb, another OpenMP, or none
        return
    use(handle, ctypes.byref(OpenMP(*found)))


def text(value):
    """A C string of any Python text; what cannot be encoded is escaped, and NUL ends it."""
    return value.encode("utf-8", "backslashreplace")


def say_why(why, reason):
    """Writes a reason into a callback's buffer, cut to its size."""
    data = text(reason)[:WHY_BYTES - 1] + b"\0"
    ctypes.memmove(why, data, len(data))
