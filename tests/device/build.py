# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the emulated device for an interpreter's PyTorch: build.py PYTHON FOLDER. Prints the path of an interpreter,
in FOLDER/bin, whose PyTorch has the device, as the default one.

Compiles what has changed since the last time, two files at once."""
import concurrent.futures
import fcntl
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-std=c++20", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-DTORCH_EXTENSION_NAME=_emulated"]
_ASK = ("import sysconfig, importlib.util; "
        "print(sysconfig.get_paths()['include'], importlib.util.find_spec('torch').submodule_search_locations[0])")


def _compile(source, made, flags):
    subprocess.run(["g++", *flags, "-c", str(source), "-o", str(made)], check=True)


# Run by each start of the interpreter.
_BOOT = ("import os, sys; os.environ.setdefault('GRADB_EMULATED_LIBRARY', %r); import emulated, faults; "
         "emulated.wait_for_import(); faults.wait_for_agent()")


def _make_interpreter(python, folder, torch, library):
    """A virtual environment with the packages of the other one, and the device."""
    if not (folder / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    for name in ("emulated.py", "faults.py"):
        shutil.copy(HERE / name, site)
    (site / "torch.pth").write_text(str(pathlib.Path(torch).parent) + "\n", encoding="utf-8")
    (site / "zz_emulated.pth").write_text(_BOOT % str(library) + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def build(python, folder):
    """The path of the interpreter. CalledProcessError: it does not compile, and the compiler has said why."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    headers, torch = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True).stdout.split()
    include = pathlib.Path(torch) / "include"
    flags = [*FLAGS, "-isystem", str(include), "-isystem", str(include / "torch" / "csrc" / "api" / "include"),
             "-isystem", headers]
    library = folder.resolve() / "_emulated.so"
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(path.stat().st_mtime for path in HERE.glob("*.h"))
        todo, objects = [], []
        for source in sorted(HERE.glob("*.cpp")):
            made = folder / (source.stem + ".o")
            objects.append(str(made))
            if not made.exists() or made.stat().st_mtime < max(newest, source.stat().st_mtime):
                todo.append((source, made, flags))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: _compile(*job), todo))
        if todo or not library.exists():
            where = str(pathlib.Path(torch) / "lib")
            subprocess.run(["g++", "-shared", *objects, "-o", str(library), "-L" + where, "-lc10",
                            "-ltorch_cpu", "-ltorch", "-ltorch_python", "-Wl,-rpath," + where], check=True)
        return _make_interpreter(python, folder, torch, library)


if __name__ == "__main__":
    print(build(*sys.argv[1:]))
