# SPDX-License-Identifier: GPL-3.0-or-later
"""Registers the emulated device with PyTorch when a program imports that, as "cuda" or under its own name, "emu", and
makes it the default one. build.py makes the interpreter in which this happens; runtime.h says what is emulated.

Environment: GRADB_EMULATED, "cuda" or "emu"; GRADB_EMULATED_LIBRARY, the extension that build.py makes;
GRADB_EMULATED_SCHEDULE, "eager", "random:SEED" or "lazy"; GRADB_EMULATED_SCRIPTS, for scripts that were written for the
CPU: random numbers are the CPU's, numpy() of a tensor on the device copies it, processes that are forked later use the
CPU, and loaders copy what their workers made to the device."""
import atexit
import contextlib
import ctypes
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import types

NAME = "_emulated"
native = None  # the extension, once loaded


def _load_before_torch(path):
    """PyTorch looks for the hooks of CUDA when it is imported: the library must be there by then."""
    libraries = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
    for name in ("libtorch_global_deps.so", "libtorch_python.so"):
        ctypes.CDLL(str(libraries / name), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)


def _prepare():
    """What must come before `import torch`; returns the device's name."""
    name = os.environ.setdefault("GRADB_EMULATED", "emu")
    if name == "cuda":
        _load_before_torch(os.environ["GRADB_EMULATED_LIBRARY"])
    return name


def _finish(torch, name):
    """What comes after `import torch`."""
    global native
    path = os.environ["GRADB_EMULATED_LIBRARY"]
    spec = importlib.util.spec_from_file_location(NAME, path)
    native = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = native
    spec.loader.exec_module(native)
    if name == "cuda":
        _patch_cuda(torch)
    else:
        torch.utils.rename_privateuse1_backend(name)
        torch._register_device_module(name, _module(torch, name))
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _patch_groups(torch)
    native.report_faults()
    atexit.register(native.wait_for_all)  # else streams' threads would run kernels while the process ends
    kind, _, seed = os.environ.get("GRADB_EMULATED_SCHEDULE", "eager").partition(":")
    native.set_schedule(kind, int(seed or 0))
    torch.set_default_device(name)
    if "GRADB_EMULATED_SCRIPTS" in os.environ:
        _run_scripts_of_cpu(torch, name)


def _run_scripts_of_cpu(torch, name):
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as Loads
    of_cpu, of_workers = torch.Tensor.numpy, Loads._process_data

    def numpy(self, force=False):
        return of_cpu(self.cpu() if self.device.type == name else self, force=force)

    def process(self, *args):
        made = of_workers(self, *args)
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(name), made)

    torch.Tensor.numpy, Loads._process_data = numpy, process
    os.register_at_fork(after_in_child=lambda: native.was_forked() and torch.set_default_device("cpu"))


def _functions(torch, name):
    """What torch.cuda and the modules of other devices have in common."""
    accelerator = torch.accelerator

    def _lazy_init():
        if native.was_forked():
            raise RuntimeError("Cannot re-initialize %s in forked subprocess. To use it with multiprocessing, you must "
                               "use the 'spawn' start method" % name.upper())

    def index_of(device=None):
        if device is None:
            return accelerator.current_device_index()
        device = torch.device(name, device) if isinstance(device, int) else torch.device(device)
        return accelerator.current_device_index() if device.index is None else device.index

    def device_of(device):
        return torch.device(name, index_of(device))

    class Stream(torch.Stream):
        def __new__(cls, device=None, priority=0, **kwargs):
            return super().__new__(cls, device=device_of(device), priority=priority) if not kwargs else \
                super().__new__(cls, **kwargs)

    class Event(torch.Event):
        def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
            return super().__new__(cls, device=torch.device(name), enable_timing=enable_timing)

    @contextlib.contextmanager
    def stream(given):
        if given is None:
            yield
            return
        with given:
            yield

    generators = [native.default_generator(device) for device in range(native.DEVICES)]

    def manual_seed_all(seed):
        for one in generators:
            one.manual_seed(int(seed))

    def memory_stats(device=None):
        allocated, peak = native.usage(index_of(device))
        found = {}
        for kind in ("allocated_bytes", "reserved_bytes", "active_bytes"):
            found.update({kind + ".all.current": allocated, kind + ".all.peak": peak})
        return found

    return {
        "_lazy_init": _lazy_init, "init": _lazy_init, "_is_in_bad_fork": native.was_forked,
        "is_available": lambda: True, "is_initialized": lambda: not native.was_forked(),
        "device_count": lambda: native.DEVICES, "current_device": accelerator.current_device_index,
        "set_device": accelerator.set_device_index, "synchronize": lambda device=None: accelerator.synchronize(
            index_of(device)),
        "current_stream": lambda device=None: accelerator.current_stream(index_of(device)),
        "set_stream": accelerator.set_stream, "Stream": Stream, "Event": Event, "stream": stream,
        "default_generators": tuple(generators), "manual_seed_all": manual_seed_all,
        "manual_seed": lambda seed: generators[index_of()].manual_seed(int(seed)),
        "get_rng_state": lambda device=None: generators[index_of(device)].get_state(),
        "set_rng_state": lambda state, device=None: generators[index_of(device)].set_state(state),
        "get_rng_state_all": lambda: [one.get_state() for one in generators],
        "set_rng_state_all": lambda states: [one.set_state(state) for one, state in zip(generators, states)],
        "initial_seed": lambda: generators[index_of()].initial_seed(),
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False,
        "memory_stats": memory_stats, "memory_allocated": lambda device=None: native.usage(index_of(device))[0],
        "memory_reserved": lambda device=None: native.usage(index_of(device))[0],
        "max_memory_allocated": lambda device=None: native.usage(index_of(device))[1],
        "max_memory_reserved": lambda device=None: native.usage(index_of(device))[1],
        "reset_peak_memory_stats": lambda device=None: native.reset_peak(index_of(device)),
        "set_per_process_memory_fraction": lambda fraction, device=None: native.set_limit(
            index_of(device), int(fraction * (8 << 30))),
        "mem_get_info": lambda device=None: ((8 << 30) - native.usage(index_of(device))[0], 8 << 30),
        "memory_snapshot": lambda mempool_id=None: [], "empty_cache": lambda: None,
        "get_device_name": lambda device=None: "emulated device",
        "get_device_capability": lambda device=None: (0, 0),
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
    }


class _Device:
    """A context manager: another current device."""

    def __init__(self, device):
        import torch
        self._torch, self._index = torch, device if isinstance(device, int) else torch.device(device).index

    def __enter__(self):
        self._before = self._torch.accelerator.current_device_index()
        if self._index is not None and self._index >= 0:
            self._torch.accelerator.set_device_index(self._index)

    def __exit__(self, *_):
        self._torch.accelerator.set_device_index(self._before)


def _module(torch, name):
    module = types.ModuleType("torch." + name)
    module.__dict__.update(_functions(torch, name), device=_Device)
    return module


def _patch_cuda(torch):
    for name, function in _functions(torch, "cuda").items():
        setattr(torch.cuda, name, function)
    torch.cuda.device = _Device
    for name in ("memory_stats", "memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved",
                 "memory_snapshot", "mem_get_info", "reset_peak_memory_stats", "empty_cache",
                 "set_per_process_memory_fraction"):
        setattr(torch.cuda.memory, name, getattr(torch.cuda, name))
    _patch_storages(torch)
    torch.cuda.random.get_rng_state, torch.cuda.random.set_rng_state = torch.cuda.get_rng_state, torch.cuda.set_rng_state


def _patch_groups(torch):
    """Gives each process group a backend for the device."""
    module = torch.distributed.distributed_c10d
    of_host = module._register_process_group

    def register(name, group):
        of_host(name, group)
        native.use_collectives(name)
    module._register_process_group = register


def _patch_storages(torch):
    """Storages that PyTorch makes without a tensor: a build without CUDA refuses those of "cuda". As there, no mode of the
    program sees them."""
    of_host = torch.storage._to

    def copied(storage, device, non_blocking=False):
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device).untyped_storage()
        return made.copy_(storage, non_blocking)

    def to(self, device, non_blocking=False):
        if device.type != "cuda" or self.device == device:
            return of_host(self, device, non_blocking)
        return copied(self, device, non_blocking)

    torch.storage._to = to
    torch.storage._StorageBase.clone = lambda self: copied(self, self.device)


class Loader:
    """Runs a module by its own loader, between two functions."""

    def __init__(self, own, before, after):
        self._own, self._before, self._after = own, before, after

    def create_module(self, spec):
        """As that one."""
        return self._own.create_module(spec)

    def exec_module(self, module):
        """As that one, between both."""
        known = self._before()
        self._own.exec_module(module)
        self._after(module, known)


class _Finder:
    """At the front of sys.meta_path: runs _prepare() before the import of torch and _finish() after it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Only torch is of interest."""
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == "torch" else None
        if spec is not None:
            spec.loader = Loader(spec.loader, _prepare, _finish)
        return spec


def wait_for_import():
    """Makes the device PyTorch's default one as soon as the program imports that."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
