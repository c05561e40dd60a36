# SPDX-License-Identifier: MIT
"""Builds gradb._native into a wheel where there are a compiler, Python's headers and the source tree around this
folder. Elsewhere the wheel does without it, and Python code does its work."""
import os
import sys

from setuptools import Extension, setup

SOURCES = os.path.join(os.pardir, "src")  # libgradb's header is in it
ABI = "cp310"  # as in native/native.h
COMPILE = ["-fvisibility=hidden", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"]
LINK = ["-Wl,-z,relro", "-Wl,-z,now"]  # checked by tools/check_hardening.py


def extension():
    """The extension module; None where it cannot be built."""
    folder = os.path.dirname(os.path.abspath(__file__))
    native = os.path.join(folder, "native")
    found = os.listdir(native) if os.path.isdir(native) else []
    sources = sorted(os.path.join("native", name) for name in found if name.endswith(".c"))
    headers = sorted(os.path.join("native", name) for name in found if name.endswith(".h"))
    if not sources or not os.path.exists(os.path.join(folder, SOURCES, "agent", "gradb.h")):
        return None
    if sys.version_info < (3, 10) or sys.implementation.name != "cpython" or "t" in sys.abiflags:
        return None
    return Extension("gradb._native", sources, depends=headers, include_dirs=[SOURCES], extra_compile_args=COMPILE,
                     extra_link_args=LINK, py_limited_api=True, optional=True)


module = extension()
if module is None:
    setup()
else:
    setup(ext_modules=[module], options={"bdist_wheel": {"py_limited_api": ABI}})
