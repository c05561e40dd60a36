# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel for CUDA, record.cu, without CUDA: NVRTC compiles it, and what it computes, compiled for the CPU, is what
PyTorch's operators compute. How it is launched is tested by a driver that runs that. Nothing here shows that it runs on a
GPU."""
import shutil
import subprocess

import harness
import torches

PACKAGE = harness.SOURCE / "python"
KERNEL = PACKAGE / "gradb" / "torch" / "record.cu"
IMPORTS = """
import ctypes, sys
sys.path[:0] = sys.argv[1:3]
import torch
import statistics_check as check
from gradb.torch import device_stats, record_kernel
"""
COMPILED = IMPORTS + """
try:
    library = record_kernel.nvrtc()
except record_kernel.Unavailable as error:
    print("none:", error)
    sys.exit()
known = record_kernel.architectures(library)
for capability in (known[0], known[-1], 1000):
    text = record_kernel.compile_for(library, capability).decode()
    assert ".entry gradb_record" in text and ".target sm_%d" % min(capability, known[-1]) in text, text[:400]
try:
    record_kernel.compile_for(library, known[0] - 1)
except record_kernel.Unavailable as error:
    print("compiled", known, error)
"""
COMPUTED = IMPORTS + """
library = ctypes.CDLL(sys.argv[3])

class Driver:
    \"\"\"Of the functions of libcuda, those that are used.\"\"\"
    def cuModuleLoadData(self, module, ptx):
        return 0 if ptx == b"ptx" else 1

    def cuModuleGetFunction(self, function, module, name):
        return 0 if name == b"gradb_record" else 1

    def cuLaunchKernel(self, function, blocks, y, z, threads, ty, tz, shared, stream, arguments, more):
        assert (y, z, threads, ty, tz, shared, more) == (1, 1, record_kernel.THREADS, 1, 1, 0, None)
        data, kind, count, rows = (ctypes.cast(one, ctypes.POINTER(what))[0] for one, what in zip(
            arguments, (ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p)))
        library.gradb_record_on_cpu(ctypes.c_void_p(data), kind, ctypes.c_longlong(count), ctypes.c_void_p(rows), blocks)
        return 0

kernel = record_kernel.Kernel(Driver(), b"ptx")
torch.manual_seed(1)
looked = 0
for dtype in record_kernel.TYPES:
    given = check.tensors(dtype)
    given["many blocks"] = check.ordinary(dtype, 300007)
    for name, tensor in given.items():
        if not record_kernel._is_dense(tensor):
            assert name in ("empty", "no columns", "strided", "expanded"), name
            continue
        rows = kernel.launch(tensor, 0)
        total = device_stats._Total(tensor.numel())
        for row in rows.tolist():
            total.add_thorough(row)
        wrong = check.differences(total.record(1.0), check.of_cpu(tensor, device_stats.NOTHING_MORE, None))
        assert not wrong, (dtype, name, wrong)
        assert (len(rows) > 1) == (name == "many blocks")
        looked += 1
for name, works in {"": False, "cuModuleLoadData": True}.items():
    try:
        record_kernel.Kernel(Driver(), b"ptx" if works else b"other")
        assert works
    except record_kernel.Unavailable:
        assert not works
print("looked at", looked)
"""


class Record(torches.Folder):
    def run_script(self, text, *args):
        path = self.write("script.py", text)
        done = subprocess.run([*torches.warm(self.python), path, str(PACKAGE), str(harness.SOURCE / "tests" / "device"),
                               *map(str, args)], env=torches.environment(), text=True, capture_output=True, check=False,
                              timeout=2 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_nvrtc_compiles_it(self):
        said = self.run_script(COMPILED)
        if said.startswith("none"):
            self.skipTest(said)
        self.assertRegex(said, r"^compiled \[75, .* 12\d\].* no longer knows devices as old as compute capability 7\.4")

    def test_it_computes_what_the_operators_do(self):
        compiler = shutil.which("g++")
        if compiler is None:
            self.skipTest("g++ is not installed")
        library = self.folder / "librecord.so"
        subprocess.run([compiler, "-x", "c++", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                        "-o", str(library), str(KERNEL)], check=True, timeout=harness.DEADLINE)
        self.assertIn("looked at 82", self.run_script(COMPUTED, library))


torches.both(Record)
del Record

if __name__ == "__main__":
    harness.main()
