# SPDX-License-Identifier: MIT
"""The statistics of a tensor on a CUDA device in one launch of a kernel of ours, record.cu, where device_stats needs
about 25 launches of PyTorch's.

NVRTC, which comes with PyTorch's builds for CUDA, compiles it when it is needed first, and the driver loads it. Where
either is missing, or the kernel's answer about a few numbers is not that of PyTorch's operators, it is not used."""
import ctypes
import glob
import os
import pathlib
import sys

import torch

SOURCE = pathlib.Path(__file__).with_name("record.cu")
THREADS, COLUMNS = 128, 17  # as in record.cu
_MOST_BLOCKS = 64           # rows that are copied to the host
_EACH = 16                  # elements of a thread, before there is another block
TYPES = {torch.bool: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.uint8: 6,
         torch.float16: 10, torch.float32: 11, torch.float64: 12, torch.bfloat16: 14}  # as enum gradb_dtype
_kernels = {}  # index of a device -> its Kernel, or the error that says why there is none


class Unavailable(Exception):
    """Why there is no kernel."""


# ---- NVRTC ----

def _candidates():
    """Where NVRTC may be: loaded by PyTorch already, beside it, or in pip's package."""
    yield from ("libnvrtc.so.%d" % version for version in (13, 12)) if sys.platform == "linux" else ()
    yield "libnvrtc.so.11.2"
    for folder in (pathlib.Path(torch.__file__).parent / "lib", *(
            pathlib.Path(path) / "nvidia" / name / "lib" for path in sys.path for name in ("cuda_nvrtc", "cu13"))):
        yield from sorted(glob.glob(os.path.join(glob.escape(str(folder)), "libnvrtc*.so*")))


def nvrtc():
    """The library. Unavailable."""
    for name in _candidates():
        if "builtins" not in name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                pass
    raise Unavailable("no NVRTC: PyTorch's builds for CUDA bring it")


def _check(library, status, program=None):
    if status == 0:
        return
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    text = library.nvrtcGetErrorString(status).decode("ascii", "replace")
    size = ctypes.c_size_t()
    if program is not None and library.nvrtcGetProgramLogSize(program, ctypes.byref(size)) == 0:
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        text += ": " + log.value.decode("utf-8", "replace").strip()
    raise Unavailable(text)


def architectures(library):
    """What NVRTC can compile for, as 75 for compute capability 7.5; ascending."""
    count = ctypes.c_int()
    _check(library, library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    found = (ctypes.c_int * count.value)()
    _check(library, library.nvrtcGetSupportedArchs(found))
    return sorted(found)


def compile_for(library, capability):
    """PTX (bytes) for devices of that compute capability, as 75, and newer ones."""
    known = [one for one in architectures(library) if one <= capability]
    if not known:
        raise Unavailable("NVRTC no longer knows devices as old as compute capability %.1f" % (capability / 10))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), SOURCE.read_bytes(), b"record.cu", 0, None, None))
    try:
        # products are not fused with sums: then the compiled code rounds as PyTorch's operators do
        options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_%d" % known[-1], b"--fmad=false")
        _check(library, library.nvrtcCompileProgram(program, len(options), options), program)
        _check(library, library.nvrtcGetPTXSize(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        _check(library, library.nvrtcGetPTX(program, text))
        return text.value
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


# ---- launching ----

class Kernel:
    """The kernel on the current device, whose context PyTorch has made. driver: libcuda. Unavailable."""

    def __init__(self, driver, ptx):
        self._driver = driver
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(driver.cuModuleLoadData(ctypes.byref(self._module), ptx))
        self._check(driver.cuModuleGetFunction(ctypes.byref(self._function), self._module, b"gradb_record"))

    @staticmethod
    def _check(status):
        if status != 0:
            raise Unavailable("CUDA's driver says error %d" % status)

    def launch(self, tensor, stream):
        """Rows (blocks, COLUMNS) of float64 on the tensor's device, computed on the stream (its address): each as
        device_stats._thorough. tensor: of one of TYPES, dense in memory, not empty."""
        blocks = max(1, min(_MOST_BLOCKS, tensor.numel() // (THREADS * _EACH)))
        rows = torch.empty((blocks, COLUMNS), dtype=torch.float64, device=tensor.device)
        arguments = (ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int(TYPES[tensor.dtype]),
                     ctypes.c_longlong(tensor.numel()), ctypes.c_void_p(rows.data_ptr()))
        addresses = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(one) for one in arguments))
        self._check(self._driver.cuLaunchKernel(self._function, blocks, 1, 1, THREADS, 1, 1, 0, ctypes.c_void_p(stream),
                                                addresses, None))
        return rows


def _make(device, thorough):
    """The Kernel of a device, if it computes what thorough() does, see rows. Unavailable."""
    major, minor = torch.cuda.get_device_capability(device)
    kernel = Kernel(ctypes.CDLL("libcuda.so.1"), compile_for(nvrtc(), 10 * major + minor))
    sample = torch.tensor([1.5, -0.0, 0.0, 2.0 ** -130, float("nan"), float("inf"), -3.0, 1000.0], device=device)
    found = kernel.launch(sample, torch.cuda.current_stream(device).cuda_stream)[0]
    if not torch.allclose(found, thorough(sample), rtol=1e-12, atol=0.0):
        raise Unavailable("its answer is wrong")
    return kernel


def rows(tensor, thorough):
    """The kernel's rows of a tensor on a CUDA device, see Kernel.launch; None: it cannot be used. thorough(tensor):
    the same by operators, one row."""
    if torch.version.cuda is None or tensor.dtype not in TYPES or not _is_dense(tensor):
        return None
    index = tensor.device.index
    with torch.cuda.device(tensor.device):
        try:
            if index not in _kernels:
                _kernels[index] = _make(tensor.device, thorough)
            kernel = _kernels[index]
            return kernel.launch(tensor, torch.cuda.current_stream(tensor.device).cuda_stream) \
                if isinstance(kernel, Kernel) else None
        except (Unavailable, AttributeError, OSError) as error:
            _kernels[index] = error
            return None


def state(index=0):
    """In words, whether the kernel is used on a device."""
    without = "no statistics have been computed" if torch.version.cuda else "PyTorch was built without CUDA"
    kernel = _kernels.get(index, without)
    return "in use" if isinstance(kernel, Kernel) else "not used: %s" % kernel


def _is_dense(tensor):
    """Whether its elements fill one piece of memory, in some order."""
    size = 1
    for stride, count in sorted(zip(tensor.stride(), tensor.shape)):
        if count != 1:
            if stride != size:
                return False
            size *= count
    return tensor.numel() > 0
