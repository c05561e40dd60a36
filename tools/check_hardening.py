# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks how programs and libraries are hardened: PIE, BIND_NOW, RELRO, stack protector, _FORTIFY_SOURCE.

    check_hardening.py BUILD    the files that `ninja install` would install
    check_hardening.py FILE     one file, such as the module that pip built

Prints one line for each fault; the exit status is 1 if there are any.
"""
import json
import pathlib
import subprocess
import sys


CHECKED = {"memcpy", "memmove", "memset", "strcpy", "strncpy", "snprintf", "vsnprintf", "read", "recv"}


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def faults_of(path):
    dynamic, headers = readelf("-d", path), readelf("-l", path)
    imported = {line.split()[7].partition("@")[0] for line in readelf("--dyn-syms", path).splitlines()
                if " UND " in line and len(line.split()) > 7}
    copies = bool(imported & CHECKED) or any(name.endswith("_chk") for name in imported)
    program = ".so" not in path.name
    checks = {
        "is not position independent": "Elf file type is DYN" in headers,
        "does not bind its symbols when it is loaded (BIND_NOW)": "BIND_NOW" in dynamic or "Flags: NOW" in dynamic,
        "has no read-only relocations (RELRO)": "GNU_RELRO" in headers,
        "has an executable stack": any("GNU_STACK" in line and "RWE" not in line for line in headers.splitlines()),
        "has no stack protector": "__stack_chk_fail" in imported,
        "is not compiled with _FORTIFY_SOURCE": not copies or any(name.endswith("_chk") for name in imported),
    }
    if program:
        checks["is not a position independent program (PIE)"] = "Flags:" in dynamic and "PIE" in dynamic
    return [f"{path}: {fault}" for fault, good in checks.items() if not good]


def installed(build):
    plan = json.loads(subprocess.run(["meson", "introspect", "--installed", build], capture_output=True, text=True,
                                     check=True).stdout)
    files = [pathlib.Path(path) for path in plan]
    return [path for path in files if path.is_file() and not path.is_symlink() and
            path.read_bytes()[:4] == b"\x7fELF"]


def main():
    place = pathlib.Path(sys.argv[1])
    binaries = installed(place) if place.is_dir() else [place]
    faults = [fault for path in binaries for fault in faults_of(path)]
    if place.is_dir() and len(binaries) < 2:
        faults.append(f"{place}: expected several installed programs and libraries, found {len(binaries)}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
