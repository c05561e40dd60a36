# SPDX-License-Identifier: GPL-3.0-or-later
"""What `meson install` leaves, and README's commands run on it word for word."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import harness

sys.path.append(str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

README = harness.SOURCE / "README.md"
TUTORIAL = harness.SOURCE / "docs" / "tutorial-c.md"
SANITIZE = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].startswith("sanitize=") else "sanitize=none"


def blocks(language, page=README):
    """The fenced blocks of a page in that language, as lists of lines."""
    text = page.read_text(encoding="utf-8")
    return [block.strip().split("\n") for block in re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", text, re.S)]


def commands():
    """README's shell commands; a line that ends in a backslash goes on in the next one."""
    lines = "\n".join(line for block in blocks("sh") for line in block).replace("\\\n", " ").split("\n")
    return [line.partition("  #")[0].strip() for line in lines]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="gradb-install-")
        subprocess.run(["meson", "install", "-C", str(harness.BUILD), "--no-rebuild", "--destdir", cls.root.name],
                       check=True, capture_output=True)
        gradb = next(pathlib.Path(cls.root.name).rglob("bin/gradb"))
        cls.prefix = gradb.parent.parent
        pc = next(cls.prefix.rglob("pkgconfig/gradb.pc"))
        cls.libdir = pc.parent.parent
        cls.work = pathlib.Path(cls.root.name) / "work"
        cls.work.mkdir()
        shims = pathlib.Path(cls.root.name) / "shims"
        shims.mkdir()
        if SANITIZE != "sanitize=none":
            # The library was built with sanitizers: a program that links it needs their runtime.
            cc = shims / "cc"
            cc.write_text(f'#!/bin/sh\nexec {shutil.which("cc")} -fsanitize={SANITIZE.partition("=")[2]} "$@"\n')
            cc.chmod(0o755)
        cls.env = dict(os.environ, HOME=str(cls.work), XDG_CONFIG_HOME=str(cls.work), XDG_STATE_HOME=str(cls.work),
                       PATH=f"{shims}:{gradb.parent}:{os.environ['PATH']}", PKG_CONFIG_PATH=str(pc.parent),
                       PKG_CONFIG_SYSROOT_DIR=cls.root.name, LD_LIBRARY_PATH=str(cls.libdir), TERM="dumb",
                       LC_ALL="C.UTF-8", PYTHONPATH=f"{harness.SOURCE}/tests/e2e:{os.environ.get('PYTHONPATH', '')}")
        trainer = "\n".join(blocks("c", TUTORIAL)[0]) + "\n"
        (cls.work / "fit.c").write_text(trainer.replace("learning_rate = 0.1f", "learning_rate = 0.02f"))
        # Without Python's headers it is not built.
        cls.has_native = (harness.BUILD / "python" / "native" / "_native.abi3.so").exists()
        # In the place of a MindSpore script: a program that speaks its protocol with the stock gRPC library.
        (cls.work / "train.py").write_text("import runpy\nrunpy.run_module('fake_mindspore', run_name='__main__')\n")

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def shell(self, line, input=None, env=None):
        return subprocess.run(["sh", "-c", line], cwd=self.work, env=dict(self.env, **(env or {})), input=input or "",
                              text=True, errors="replace", capture_output=True, timeout=2 * harness.DEADLINE, check=False)

    def build_trainer(self):
        line = next(line for block in blocks("console", TUTORIAL) for line in block if line.startswith("$ cc "))
        done = self.shell(line[2:])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_files_are_where_a_packager_expects_them(self):
        for name in ("include/gradb.h", "share/man/man1/gradb.1", "share/bash-completion/completions/gradb",
                     "share/zsh/site-functions/_gradb", "share/fish/vendor_completions.d/gradb.fish",
                     "share/gradb/python/MIT.txt"):
            self.assertTrue((self.prefix / name).is_file(), name)
        for name in ("libgradb.so", "libgradb.so.1", "libgradb.a"):
            self.assertTrue((self.libdir / name).exists(), name)
        self.assertEqual((self.libdir / "gradb" / "_native.abi3.so").is_file(), self.has_native)

    def test_a_program_in_an_environment_finds_the_agent_that_a_wheel_put_there(self):
        environment = self.work / "environment"
        packages = environment / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        (environment / "bin").mkdir(parents=True)
        packages.mkdir(parents=True)
        gradb = shutil.copy(self.prefix / "bin" / "gradb", environment / "bin")
        said = self.work / "said"
        script = self.work / "say.py"
        script.write_text(f"import os\nopen({str(said)!r}, 'w').write(os.environ.get('PYTHONPATH', ''))\n")

        def run():
            return self.shell(f"'{gradb}' --batch --listen 127.0.0.1:0 run -- '{sys.executable}' '{script}'")
        done = run()
        self.assertIn("gradb's Python agent was not found in", done.stderr)
        self.assertIn(str(environment / "bin" / ".." / "lib*" / "python3*"), done.stderr)
        shutil.copytree(harness.SOURCE / "python" / "gradb", packages / "gradb")
        done = run()
        self.assertNotIn("was not found", done.stderr)
        self.assertEqual(said.read_text().split(":")[0], str((packages / "gradb" / "_boot").resolve()))

    def test_python_package_is_whole(self):
        def files(root):
            return sorted(str(path.relative_to(root)) for path in root.rglob("*")
                          if path.is_file() and path.suffix != ".pyc")
        installed = self.prefix / "share" / "gradb" / "python" / "gradb"
        self.assertEqual(files(installed), files(harness.SOURCE / "python" / "gradb"))
        self.assertIn("_boot/sitecustomize.py", files(installed))

    def test_library_is_free_of_the_debuggers_libraries(self):
        needed = subprocess.run(["readelf", "-d", str(self.libdir / "libgradb.so")], capture_output=True, text=True,
                                check=True).stdout
        for gpl in ("readline", "ncurses", "cjson", "libev"):
            self.assertNotIn(gpl, needed)

    def test_a_build_without_cmocka(self):
        """Who only wants the program needs nothing of the tests."""
        shims = self.work / "no-cmocka"
        shims.mkdir()
        pkg_config = shims / "pkg-config"
        pkg_config.write_text(f'#!/bin/sh\ncase "$*" in *cmocka*) exit 1 ;; esac\nexec {shutil.which("pkg-config")} "$@"\n')
        pkg_config.chmod(0o755)
        setup = ["meson", "setup", str(self.work / "plain"), str(harness.SOURCE)]
        env = dict(os.environ, PKG_CONFIG=str(pkg_config), CMAKE="false")
        done = subprocess.run(setup, env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ *tests *: *(NO|False)")
        refused = subprocess.run([*setup[:2], str(self.work / "tested"), setup[3], "-Dtests=enabled"], env=env,
                                 capture_output=True, text=True, check=False)
        self.assertIn("cmocka", refused.stdout)
        self.assertNotEqual(refused.returncode, 0)

    def test_manual_page_is_clean(self):
        done = self.shell(f"man --warnings -l {self.prefix}/share/man/man1/gradb.1 2>&1 >/dev/null")
        self.assertEqual(done.stdout, "")

    def test_bash_completion_loads(self):
        done = self.shell(f"bash -c '. {self.prefix}/share/bash-completion/completions/gradb && complete -p gradb'")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_header_compiles_as_cpp(self):
        done = self.shell("echo '#include <gradb.h>' | g++ -Wall -Wextra -Werror -x c++ -fsyntax-only "
                          "$(pkg-config --cflags gradb) -")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_c_trainer(self):
        self.build_trainer()
        alone = self.shell("./fit", env={"GRADB_ADDRESS": f"127.0.0.1:{harness.free_port()}"})
        self.assertEqual(alone.returncode, 0, alone.stderr)
        done = self.shell("gradb run -- ./fit", input="step 3\nprint net/weight\nkill\nquit\n")
        self.assertIn("Stopped at the end of step 3", done.stdout)
        self.assertRegex(done.stdout, r"\[3\.01\d+ +0\.62\d+\]")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_batch(self):
        self.build_trainer()
        line = next(line for line in commands() if "'step 3'" in line)
        done = self.shell(line)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("4 nodes", done.stdout)

    def test_watching_leaves_a_history(self):
        self.build_trainer()
        lines = [line for line in commands() if "history" in line]
        self.assertEqual(len(lines), 2)
        for line in lines:
            done = self.shell(line)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ *200 +\d")

    def test_what_a_run_left(self):
        self.build_trainer()
        lines = [line for line in commands() if "before.npz" in line]
        save, look, compare = (self.shell(line) for line in lines)
        self.assertEqual((save.returncode, look.returncode), (0, 0), save.stdout + save.stderr + look.stderr)
        self.assertRegex(look.stdout, r"float32 +\(2,\) +net/weight")
        self.assertEqual(compare.returncode, 6, compare.stdout + compare.stderr)
        self.assertRegex(compare.stdout, r"(?m)^FAIL +net/weight")

    def test_mindspore_run(self):
        done = self.shell("gradb run -- python3 train.py", input="info target\nstep\nkill\nquit\n")
        self.assertIn("MindSpore", done.stdout)
        self.assertIn("Stopped at the end of step 1", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mindspore_listen(self):
        port = harness.free_port()  # the usual one may be taken on this machine
        line = "exec gradb listen".replace("gradb", f"gradb --listen 127.0.0.1:{port}")
        gradb = subprocess.Popen(["sh", "-c", line], cwd=self.work, env=self.env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = threading.Timer(harness.DEADLINE, gradb.kill)  # ends the loops below
        deadline.start()
        try:
            lines = []
            for line in gradb.stdout:
                lines.append(line)
                if f":{port}" in line:
                    break
            self.assertTrue(lines and f":{port}" in lines[-1], "".join(lines))
            trainer = threading.Thread(target=self.shell, args=("ENABLE_MS_DEBUGGER=1 python3 train.py",),
                                       kwargs={"env": {"MS_DEBUGGER_PORT": str(port)}})
            trainer.start()
            for line in gradb.stdout:
                lines.append(line)
                if "topped before the first step" in line:
                    break
            out, _ = gradb.communicate("step\nkill\nquit\n", timeout=harness.DEADLINE)
            self.assertIn("Stopped at the end of step 1", out, "".join(lines) + out)
            trainer.join(harness.DEADLINE)
        finally:
            deadline.cancel()
            gradb.kill()
            gradb.wait()

    def pytorch(self, python, line, **env):
        """A line of README with `python`, and what is beside it, the given interpreter, and a train.py of PyTorch's."""
        folder = self.work / "pytorch"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "bin").mkdir(parents=True)
        (folder / "train.py").write_text(torches.TRAINER, encoding="utf-8")
        (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (folder / "bin" / "python").chmod(0o755)
        path = f"{folder}/bin:{pathlib.Path(python).parent}:{self.env['PATH']}"
        if pathlib.Path(python).parent == pathlib.Path("/usr/bin"):
            path = f"{folder}/bin:{self.env['PATH']}"
        (folder / "gradb").mkdir()
        (folder / "gradb" / "gradbrc").write_text("set start-timeout 0\n")  # importing PyTorch may take long
        env = torches.environment(**{**self.env, "XDG_CONFIG_HOME": str(folder), "PATH": path, "PYTHONPATH": "", **env})
        return subprocess.run(["sh", "-c", line], cwd=folder, env=env, input="info ranks\nstep 2\nkill\nquit\n",
                              text=True, errors="replace", capture_output=True, timeout=2 * harness.DEADLINE, check=False)

    def test_pytorch_run(self):
        if not torches.interpreters() or not torches.library():
            self.skipTest("no PyTorch, or no libgradb that it can load")
        for python in torches.interpreters():
            with self.subTest(python=python):
                done = self.pytorch(python, "gradb run -- python train.py")
                self.assertIn("pytorch " + torches.version_of(python), done.stdout, done.stdout + done.stderr)
                self.assertIn("Stopped at the end of step 2", done.stdout)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_native_module_of_the_installation_is_taken(self):
        if not self.has_native or not torches.library() or torches.is_sanitized():
            self.skipTest("no native module, or none that an interpreter can load")
        look = self.work / "look.py"
        look.write_text("import gradb.native\nprint(gradb.native.module and gradb.native.module.__file__)\n")
        package = self.prefix / "share" / "gradb" / "python"
        for native, expected in (("1", str(self.libdir / "gradb" / "_native.abi3.so")), ("0", "None")):
            env = torches.environment(PYTHONPATH=str(package), GRADB_NATIVE=native,
                                      GRADB_LIBRARY=str(self.libdir / "libgradb.so.1"))
            found = subprocess.run([torches.DEBIAN, str(look)], env=env, capture_output=True, text=True, check=False)
            self.assertEqual(found.stdout.strip(), expected, found.stderr)

    def test_pytorch_ranks(self):
        python = torches.pip()
        if python is None or not torches.library():
            self.skipTest("no PyTorch whose torchrun runs on this Python, or no libgradb that it can load")
        # the launcher's own port: a free one
        done = self.pytorch(python, "gradb run -- torchrun --nproc-per-node 2 train.py",
                            PET_MASTER_PORT=str(harness.free_port()))
        self.assertIn("Connected: training process 2", done.stdout, done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_listen_everywhere_wants_a_token(self):
        done = self.shell("gradb --listen 0.0.0.0:50051 listen".replace("50051", str(harness.free_port())), input="quit\n")
        self.assertRegex(done.stdout, r"GRADB_TOKEN\S*[= ]\s*\w{16,}")

    # README's other lines: tested elsewhere, done by meson for these tests, or by the one who runs them.
    ELSEWHERE = ("./dev demo", "sudo apt-get install ", "meson setup build/install", "ninja -C build/install",
                 "sudo ninja -C build/install install", "sudo ldconfig",
                 "pip install gradb-*.whl", "gradb open DIRECTORY")  # test_packages.py; the dumps' tutorial

    def test_every_command_of_readme_is_run(self):
        ours = pathlib.Path(__file__).read_text(encoding="utf-8")
        for name in ("test_attach.py", "test_diagnose.py", "test_launch.py"):
            ours += (harness.SOURCE / "tests" / "torch" / name).read_text(encoding="utf-8")
        for command in commands():
            run = command in ours or command.startswith(("gradb --batch", *self.ELSEWHERE))
            self.assertTrue(run, f"no test runs README's command: {command}")


if __name__ == "__main__":
    harness.main()
