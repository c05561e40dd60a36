# SPDX-License-Identifier: MIT
"""gradb._native in a wheel, where it can be built: with a compiler, Python's headers, and the tree around this folder.
Else the wheel goes without it, and Python does its work."""
import os
import sys

from setuptools import Extension, setup

SOURCES = os.path.join(os.pardir, "src")  # of libgradb, whose header it reads
ABI = "cp310"  # as native/native.h says
COMPILE = ["-fvisibility=hidden", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"]
LINK = ["-Wl,-z,relro", "-Wl,-z,now"]  # tools/check_hardening.py looks at what comes of it


def extension():
    """What is to be built; None where it cannot be."""
    folder = os.path.dirname(os.path.abspath(__file__))
    native = os.path.join(folder, "native")
    found = os.listdir(native) if os.path.isdir(native) else []
    sources = sorted(os.path.join("native", name) for name in found if name.endswith(".c"))
    if not sources or not os.path.exists(os.path.join(folder, SOURCES, "agent", "gradb.h")):
        return None
    if sys.version_info < (3, 10) or sys.implementation.name != "cpython" or "t" in sys.abiflags:
        return None
    return Extension("gradb._native", sources, depends=[os.path.join("native", "native.h")], include_dirs=[SOURCES],
                     extra_compile_args=COMPILE, extra_link_args=LINK, py_limited_api=True, optional=True)


module = extension()
if module is None:
    setup()
else:
    setup(ext_modules=[module], options={"bdist_wheel": {"py_limited_api": ABI}})
