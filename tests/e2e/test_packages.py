# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel and the Debian packages, installed in clean roots, and used there.

A clean root is Debian's minimal system with Python, in build/clean-root.tar (./dev makes it): no compiler, no -dev
package, none of our libraries. The programs in it run in a mount namespace of their own, which needs root."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import venvs

sys.path.append(str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

TAR = harness.BUILD.resolve().parent / "clean-root.tar"
VERSION = (harness.SOURCE / "python" / "gradb" / "VERSION").read_text(encoding="ascii").strip()
LIMIT = 5 * harness.DEADLINE
BUILD_LIMIT = 15 * harness.DEADLINE  # of a whole build

# The folder of pip's PyTorch is mounted at /torch. All mounts end with the namespace.
MOUNTS = """
set -e
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
[ -z "$2" ] || mount --bind "$2" "$1/torch"
root=$1
shift 2
exec chroot "$root" env -i HOME=/root PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 \\
    TERM="${TERM_INSIDE:-dumb}" "$@"
"""
# Panes on a terminal of 80x24: prints what they drew, once the prompt stands.
PANES = r"""
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
os.close(slave)
seen, asked = b"", False
while True:
    try:
        data = os.read(master, 65536)
    except OSError:
        break
    if not data:
        break
    seen += data
    if not asked and b"(gradb)" in seen:
        asked = True
        os.write(master, b"quit\r")
sys.stdout.write(seen.decode(errors="replace"))
sys.exit(child.wait())
"""


def site_packages():
    """The folder of pip's PyTorch; None: there is none for the Python of the clean root."""
    python = torches.pip()
    if python is None:
        return None
    asked = "import sys, sysconfig; print(sys.version_info[:2] == (3, 11)); print(sysconfig.get_path('purelib'))"
    fits, path = subprocess.run([python, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return path if fits == "True" else None


class Root(unittest.TestCase):
    """A clean root of its own for each class."""
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not TAR.exists():
            raise unittest.SkipTest("needs root and build/clean-root.tar, which ./dev test makes")
        cls.folder = tempfile.TemporaryDirectory(prefix="gradb-package-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.work = pathlib.Path(cls.folder.name)
        cls.root = cls.work / "root"
        cls.root.mkdir()
        subprocess.run(["tar", "-xf", TAR, "-C", cls.root, "--exclude=./dev/*"], check=True)
        (cls.root / "torch").mkdir()
        cls.torch = site_packages()

    @classmethod
    def inside(cls, *command, status=0, term="dumb", limit=LIMIT):
        """Runs a command in the root. Returns what it printed, on both streams."""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", MOUNTS, "sh", str(cls.root), cls.torch or "", *command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=limit, check=False, env=dict(os.environ, TERM_INSIDE=term))
        if done.returncode != status:
            raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}")
        return done.stdout

    def check_the_demo(self):
        self.assertIn("# Found: the logarithm of a probability that underflowed to 0", self.inside("gradb", "demo"))

    def check_a_script(self, python):
        """PyTorch, debugged: a step, a value, the native module."""
        if self.torch is None:
            self.skipTest("no pip's PyTorch for Python 3.11")
        (self.root / "train.py").write_text(torches.TRAINER, encoding="utf-8")
        said = self.inside("gradb", "--batch", "--listen", "127.0.0.1:0", "-ex", "set start-timeout 0", "-ex",
                           f"run -- {python} /train.py", "-ex", "step 2", "-ex", "info target", "-ex", "print net/weight",
                           "-ex", "kill")
        self.assertIn("Stopped at the end of step 2", said)
        self.assertIn("float32", said)
        look = "import gradb.native as n; print(n.module is not None)"
        self.assertEqual(self.inside(python, "-c", look).strip(), "True")

    def check_the_panes(self, term):
        drawn = self.inside("python3", "-c", PANES, "gradb", "-nx", "--tui", "--listen", "127.0.0.1:0", term=term)
        self.assertIn("\x1b[", drawn)  # it moved the cursor: the terminal is known
        self.assertIn("console", drawn)
        self.assertNotIn("error", drawn)


class Wheel(Root):
    """Made from this build; `./dev package wheel` does the same in an older Debian."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tools = venvs.python("tools")
        if tools is None:
            raise unittest.SkipTest("no build/tools-venv with auditwheel")
        made = subprocess.run([tools, str(harness.SOURCE / "tools" / "package_wheel.py"), str(harness.BUILD), cls.work / "out"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
        assert made.returncode == 0, made.stdout
        cls.wheel = next((cls.work / "out").glob("gradb-*.whl"))
        shutil.copy(cls.wheel, cls.root)
        cls.inside("python3", "-m", "venv", "/venv")
        cls.inside("/venv/bin/pip", "install", "--no-index", "--disable-pip-version-check", f"/{cls.wheel.name}")
        (cls.root / "venv/lib/python3.11/site-packages/torch.pth").write_text("/torch\n", encoding="ascii")

    def test_the_root_is_clean(self):
        packages = self.inside("dpkg-query", "-W", "-f", "${Package}\n").split()
        ours = ("libcjson1", "libev4", "libnghttp2-14", "libprotobuf-c1", "libsodium23")
        self.assertEqual([name for name in packages if name.endswith("-dev") or name in ours], [])

    def test_its_name_says_where_it_works(self):
        self.assertRegex(self.wheel.name, rf"^gradb-{VERSION}-py3-none-manylinux_2_\d+_\w+\.whl$")

    def test_the_program_starts(self):
        for command in (["gradb"], ["/venv/bin/python", "-m", "gradb"]):
            self.assertEqual(self.inside(*command, "--version").strip(), f"gradb {VERSION}")

    def test_the_demo(self):
        self.check_the_demo()

    def test_a_script_of_pytorch(self):
        self.check_a_script("/venv/bin/python")

    def test_what_else_it_brings(self):
        share = self.root / "venv" / "share"
        for name in ("man/man1/gradb.1", "bash-completion/completions/gradb", "zsh/site-functions/_gradb",
                     "fish/vendor_completions.d/gradb.fish"):
            self.assertTrue((share / name).is_file(), name)

    def test_terminals_are_known(self):
        self.check_the_panes("xterm-256color")
        moved = self.root / "lib" / "terminfo"
        moved.rename(self.work / "terminfo")  # a system without descriptions
        try:
            self.check_the_panes("xterm-256color")
        finally:
            shutil.move(self.work / "terminfo", moved)


class DebianPackages(Root):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("dpkg-buildpackage") is None or shutil.which("dh_python3") is None:
            raise unittest.SkipTest("no debhelper")
        source = cls.work / f"gradb-{VERSION}"
        shutil.copytree(harness.SOURCE, source, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASAN")}
        made = subprocess.run(["dpkg-buildpackage", "--unsigned-source", "--unsigned-changes", "--build=binary",
                               f"--jobs={os.cpu_count()}"], cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=BUILD_LIMIT, check=False,
                              env=dict(environment, DEB_BUILD_OPTIONS="noautodbgsym", DEB_CFLAGS_APPEND="-O1"))
        assert made.returncode == 0, made.stdout[-4000:]
        cls.changes = next(cls.work.glob("gradb_*.changes"))
        names = [shutil.copy(path, cls.root) and f"/{path.name}" for path in cls.work.glob("*.deb") if "-dev_" not in path.name]
        cls.inside("dpkg", "--unpack", *names)
        # What they depend on is in the root's cache.
        cls.inside("apt-get", "install", "--yes", "--no-download", "--no-install-recommends", "--fix-broken")

    def test_lintian_is_content(self):
        done = subprocess.run(["lintian", "--profile", "debian", "--allow-root", "--fail-on", "error,warning", str(self.changes)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_version_is_ours(self):
        self.assertRegex(self.changes.name, rf"^gradb_{VERSION}-0gradb\d+_")
        self.assertEqual(self.inside("gradb", "--version").strip(), f"gradb {VERSION}")

    def test_the_demo(self):
        self.check_the_demo()

    def test_a_script_of_pytorch(self):
        (self.root / "usr/lib/python3/dist-packages/torch.pth").write_text("/torch\n", encoding="ascii")
        self.check_a_script("python3")

    def test_terminals_are_known(self):
        self.check_the_panes("xterm-256color")


if __name__ == "__main__":
    harness.main()
