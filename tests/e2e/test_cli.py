# SPDX-License-Identifier: GPL-3.0-or-later
"""The program from outside: arguments, exit statuses, files, the prompt on a terminal, Ctrl-C."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import harness

DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
SMALL = ["--data", str(DATA), "--seed", "1", "--threads", "1", *harness.SMALL, "--batch", "4"]


def trainer(*args):
    return ["run", "--", str(harness.CHARLM), *SMALL, *args]


def mindspore(*args):
    """A training process that evaluates watchpoints."""
    return ["run", "--", sys.executable, str(harness.SOURCE / "tests" / "e2e" / "fake_mindspore.py"), *args]


def gradb(*args, **kwargs):
    return harness.run_gradb("-q", "-nx", "--listen", "127.0.0.1:0", *args, **kwargs)


def stand_still(pid):
    """Stops a process, and waits until the last of its threads stands."""
    def stands():
        states = [path.read_text().rpartition(")")[2].split()[0] for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
        return set(states) == {"T"}
    os.kill(pid, signal.SIGSTOP)
    harness.wait_for(f"process {pid} to stand still", stands)


class Usage(unittest.TestCase):
    def test_version_and_help(self):
        done = harness.run_gradb("--version")
        self.assertRegex(done.stdout, r"^gradb \d+\.\d+\.\d+\n$")
        self.assertEqual(done.returncode, 0)
        done = harness.run_gradb("--help")
        for word in ("run -- PROGRAM", "listen", "demo", "--batch", "-ex COMMAND", "--color=WHEN"):
            self.assertIn(word, done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_wrong_usage_is_2_and_one_line(self):
        for args in (["--nonsense"], ["nonsense"], ["-x"], ["run"], ["run", "--"], ["--color=blue"],
                     ["listen", "1", "2"], ["--generate", "x"], ["demo", "x"]):
            done = harness.run_gradb(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertRegex(done.stderr, r"^error: [^\n]+\n$")
            self.assertEqual(done.stdout, "")


class Batch(unittest.TestCase):
    def test_good_is_0(self):
        done = gradb("--batch", "-ex", "step 2", "-ex", "print Default/network/head.bias[0]",
                     *trainer("--steps", "5"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Stopped at the end of step 2.", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_a_failed_command_is_1_and_the_rest_is_left(self):
        done = gradb("--batch", "-ex", "nonsense", "-ex", "echo never\\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, 'error: there is no command "nonsense": see "help"\n')
        self.assertNotIn("never", done.stdout)

    def test_recommended_watchpoints_are_neither_asked_about_nor_set(self):
        program = " ".join(trainer("--steps", "5"))
        for how in ("ask", "on"):
            done = gradb("--batch", "-ex", f"set recommend {how}", "-ex", program, "-ex", "info watchpoints")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("recommend", done.stdout)
            self.assertIn("No watchpoints.", done.stdout)

    def test_commands_and_files_run_in_the_order_given(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "two.gdb")
            path.write_text("echo two\\n\n", encoding="utf-8")
            done = gradb("--batch", "-ex", "echo one\\n", "-x", path, "-ex", "echo three\\n")
        self.assertEqual(done.stdout, "one\ntwo\nthree\n")
        self.assertEqual(done.returncode, 0)

    def test_an_unreadable_script(self):
        done = gradb("--batch", "-x", "/nonexistent/script")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "error: cannot read the command file /nonexistent/script: "
                                      "No such file or directory\n")
        done = gradb("--batch", "-x", "/")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: [^\n]*directory\n$")

    def test_an_error_in_a_script_names_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "bad.gdb")
            path.write_text("echo fine\\n\n\nstep\n", encoding="utf-8")
            done = gradb("--batch", "-x", path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"bad\.gdb:3: no training process is connected")

    def test_a_program_that_is_not_there_is_3(self):
        done = gradb("--batch", "run", "--", "/nonexistent/trainer")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr,
                         "error: cannot run /nonexistent/trainer: No such file or directory\n")

    def test_a_program_that_never_connects_is_3(self):
        done = gradb("--batch", "run", "--", "/bin/sh", "-c", "echo broken config >&2; exit 9")
        self.assertEqual(done.returncode, 3)
        self.assertIn("exited with status 9 before it connected", done.stderr)
        self.assertIn("broken config", done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rc")
            path.write_text("set on-error kill\nset start-timeout 0.2\nrun -- /bin/sleep 1000\n", encoding="utf-8")
            done = gradb("--batch", "-x", path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("did not connect within 0.2 s", done.stderr)

    def test_a_port_in_use_is_3(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = harness.run_gradb("-q", "-nx", "--batch", "--listen", f"127.0.0.1:{port}", "listen")
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, rf"^error: [^\n]*{port}[^\n]*in use[^\n]*\n$")
            done = harness.run_gradb("-q", "-nx", "--listen", f"127.0.0.1:{port}", "listen", input="")
            self.assertEqual(done.returncode, 3)

    def test_a_bad_address_is_refused(self):
        for address in ("nonsense", "127.0.0.1:99999", "127.0.0.1:", "300.1.1.1:1"):
            done = harness.run_gradb("-q", "-nx", "--batch", "--listen", address, "listen")
            self.assertEqual(done.returncode, 3, address)
            self.assertRegex(done.stderr, r"^error: [^\n]+\n$")

    def test_other_hosts_need_a_token(self):
        done = harness.run_gradb("-q", "-nx", "--listen", "0.0.0.0:0", "listen", input="show token\n")
        token = re.search(r"GRADB_TOKEN=([0-9a-f]{32})", done.stdout)
        self.assertTrue(token, done.stdout + done.stderr)
        self.assertIn("token = " + token.group(1), done.stdout)

    def test_the_trainer_ends_with_gradb(self):
        done = gradb("--batch", "--json", "-ex", "step", *trainer("--steps", "100000"))
        self.assertEqual(done.returncode, 0, done.stderr)
        first = json.loads(next(line for line in done.stdout.splitlines() if '"connected"' in line))
        harness.wait_for("the end of the trainer", lambda: not os.path.exists(f"/proc/{first['pid']}"))

    def test_the_end_of_the_training_is_no_failure(self):
        done = gradb("--batch", "-ex", "continue", "-ex", "info target", *trainer("--steps", "3"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The training ended.", done.stdout)

    def test_empty_lines_of_a_pipe_or_a_file_do_nothing(self):
        """At a prompt an empty line is the last command again."""
        lines = "step\n\n \t\n# a comment\n  # and one\n\r\ninfo target\n\nkill\n"
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "lines.gdb"
            script.write_text(lines, encoding="utf-8")
            for mode in ([], ["--json"]):
                for way, given in (([], lines), (["--batch", "-x", script], "")):
                    with self.subTest(mode=mode, way=way):
                        done = gradb(*mode, *way, *trainer("--steps", "9"), input=given)
                        found = re.findall(r'end of step (\d+)|"type":"stopped",.*"reason":"step","step":(\d+)', done.stdout)
                        self.assertEqual([one or other for one, other in found], ["1"], done.stdout)

    def test_a_command_without_arguments_takes_none(self):
        """`kill 2` must not end process 1."""
        for command in ("detach 2", "interrupt 1", "recheck 1", "info target 2"):
            done = gradb("--batch", "-ex", "set on-error continue", "-ex", command, "-ex", "step 2",
                         *trainer("--steps", "9"))
            word = command.rpartition(" ")[0]
            self.assertIn(f"error: {word} takes no argument (usage: {word})", done.stderr)
            self.assertIn("end of step 2", done.stdout)
        done = gradb("--batch", "-ex", "set on-error continue", "-ex", "kill 2", "-ex", "step 2", *trainer("--steps", "9"))
        self.assertIn("error: kill: expected nothing, or \"training\"", done.stderr)
        self.assertIn("end of step 2", done.stdout)

    def test_interrupted_is_130(self):
        with harness.Gradb("--batch", "-nx", "-ex", "continue",
                           command=trainer("--steps", "1000000")) as run:
            run.expect("Continuing")
            run.interrupt()
            self.assertEqual(run.process.wait(timeout=harness.DEADLINE), 130)


class Status(unittest.TestCase):
    """What a batch run with a watchpoint ends with, each status exactly."""

    WATCH = ("--batch", "-ex", "watch TO on all", "-ex", "continue")

    def test_a_watchpoint_that_fires_is_4(self):
        for backend in ("GPU", "Ascend"):
            for json_mode in ([], ["--json"]):
                with self.subTest(backend=backend, json=json_mode):
                    done = gradb(*json_mode, *self.WATCH, *mindspore("--backend", backend, "--nan-step", "2"))
                    self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
                    self.assertEqual(done.stderr, "")

    def test_one_that_does_not_fire_is_0(self):
        done = gradb(*self.WATCH, *mindspore())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("The training ended.", done.stdout)

    def test_a_fault_that_nobody_watches_is_0(self):
        done = gradb("--batch", "-ex", "continue", *mindspore("--nan-step", "2"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_command_that_fails_is_1_before_and_after(self):
        done = gradb("--batch", "-ex", "nonsense", *self.WATCH[1:], *mindspore("--nan-step", "2"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertNotIn("Watchpoint", done.stdout)
        done = gradb(*self.WATCH, "-ex", "nonsense", *mindspore("--nan-step", "2"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("Watchpoint 1", done.stdout)

    def shell(self, script, *commands):
        """A shell that trains and then does something else, in batch mode."""
        return gradb("--batch", *harness.typed(*commands), "run", "--", "/bin/sh", "-c",
                     '"$0" "$@"; ' + script, str(harness.CHARLM), *SMALL, "--steps", "2")

    def test_a_program_that_fails_is_5(self):
        for script, said in (("exit 3", "exited with status 3"), ("kill -9 $$", "was killed by signal 9 (Killed)")):
            done = self.shell(script, "continue")
            self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
            self.assertIn(said, done.stdout)
        done = self.shell("exit 3", "continue", "nonsense")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_what_gradb_ends_did_not_fail(self):
        done = self.shell("exit 3", "kill")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_comes_to_its_end_after_its_training(self):
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder, "result")
            done = self.shell(f"printf whole >'{result}.new'; mv '{result}.new' '{result}'", "continue")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("exited", done.stdout)
            self.assertEqual(result.read_text(encoding="utf-8"), "whole")

    def test_quit_has_the_last_word(self):
        done = gradb(*self.WATCH, "-ex", "quit 7", *mindspore("--nan-step", "2"))
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)

    def test_at_a_prompt_hits_are_no_failure(self):
        done = gradb(*mindspore("--nan-step", "2"), input="watch TO on all\ncontinue\nnonsense\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Job(unittest.TestCase):
    """With --batch gradb lasts as long as the job that it started, and does not end it for a mistake of its own."""

    def setUp(self):
        self.folder = harness.folder_of(self)

    def batch(self, script, *commands):
        """gradb over a shell script, in which $charlm trains for a few steps."""
        charlm = shlex.join([str(harness.CHARLM), *SMALL])
        return gradb("--batch", *harness.typed(*commands), "run", "--", "sh", "-c",
                     script.replace("$charlm", charlm), cwd=self.folder)

    def result(self):
        """What the script wrote; None when it did not get so far."""
        path = self.folder / "result"
        return path.read_text(encoding="utf-8").strip() if path.exists() else None

    def test_one_training_after_the_other(self):
        done = self.batch("$charlm --steps 5; $charlm --steps 900 && echo both >result", "continue", "info log -a")
        self.assertEqual((done.returncode, self.result()), (0, "both"), done.stdout + done.stderr)
        self.assertIn("finished after 900 steps", done.stdout)

    def test_two_trainings_at_once(self):
        done = self.batch("$charlm --steps 900 & $charlm --steps 5; wait; echo both >result", "continue", "info log -a")
        self.assertEqual((done.returncode, self.result()), (0, "both"), done.stdout + done.stderr)
        self.assertIn("finished after 900 steps", done.stdout)
        self.assertIn("finished after 5 steps", done.stdout)

    def test_a_stop_of_the_second_is_the_prompt(self):
        done = self.batch("$charlm --steps 2; $charlm --steps 900; echo both >result", "watch loss < 3", "continue",
                          "info target", "delete 1", "continue")
        self.assertEqual((done.returncode, self.result()), (4, "both"), done.stdout + done.stderr)
        self.assertRegex(done.stdout, "(?s)Watchpoint 1.*Training process 2:.*state +stopped")

    def test_lost_training_is_5_when_the_program_has_ended(self):
        done = self.batch("($charlm --steps 100000 & echo $! >pid; wait $!; sleep 0.1; echo whole >result)&"
                          " while ! test -s pid; do sleep 0.01; done; sleep 1; kill -9 $(cat pid); wait", "continue")
        self.assertEqual((done.returncode, self.result()), (5, "whole"), done.stdout + done.stderr)

    def test_on_error(self):
        script = "$charlm --steps 900; echo $? >result"
        for how, result in (("", "0"), ("detach", "0"), ("kill", None), ("continue", "0")):
            with self.subTest(how=how):
                commands = [f"set on-error {how}"] if how else []
                done = self.batch(script, *commands, "nonsense", "echo next\\n", "continue")
                self.assertEqual((done.returncode, self.result()), (1, result), done.stdout + done.stderr)
                self.assertEqual("next" in done.stdout, how == "continue", done.stdout)
                self.assertEqual("warning: a command failed" in done.stderr, how in ("", "detach"), done.stderr)
                (self.folder / "result").unlink(missing_ok=True)

    def test_on_error_in_a_command_file(self):
        (self.folder / "check.gdb").write_text("set on-error continue\nstep\nnonsense\necho next\\n\n", encoding="utf-8")
        done = self.batch("$charlm --steps 9; echo $? >result", f"source {self.folder}/check.gdb", "continue")
        self.assertEqual((done.returncode, self.result()), (1, "0"), done.stdout + done.stderr)
        self.assertIn("next", done.stdout)

    def test_a_program_that_does_not_connect_in_time_is_not_ended(self):
        done = gradb("--batch", "-ex", "set start-timeout 0.2", "-ex", "run -- sh -c 'sleep 1; echo late >result'",
                     cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(harness.wait_for("the program's result", self.result), "late")


class Leaving(unittest.TestCase):
    """What becomes of the training process when gradb lets go is told as it is."""

    def test_a_mindspore_process_needs_gradb(self):
        done = gradb(*mindspore("--steps", "3"), input="step\ndetach\nquit\n")
        self.assertNotIn("training ended", done.stdout)
        self.assertIn("Detached: training process 1 continues while gradb runs.\n", done.stdout)
        self.assertIn("A MindSpore process ends about 15 s after its debugger exits", done.stdout)
        self.assertTrue(done.stdout.endswith("will end about 15 s from now.\n"), done.stdout)

    def test_others_do_not(self):
        done = gradb(*trainer("--steps", "5"), input="step\ndetach\nquit\n")
        self.assertTrue(done.stdout.endswith("Detached: training process 1 continues.\n"), done.stdout)


class Files(unittest.TestCase):
    def with_rc(self, text, *args, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            rc = pathlib.Path(folder, "gradb", "gradbrc")
            rc.parent.mkdir()
            rc.write_text(text, encoding="utf-8")
            return harness.run_gradb("-q", *args, env={"XDG_CONFIG_HOME": folder}, **kwargs)

    def test_gradbrc_is_read_first(self):
        done = self.with_rc("set print precision 4\necho rc\\n\n", "--batch", "-ex", "show print precision")
        self.assertEqual(done.stdout, "rc\nprint precision = 4 digits\nDigits after the decimal point.\n")

    def test_nx_leaves_it_out(self):
        done = self.with_rc("echo rc\\n\n", "-nx", "--batch", "-ex", "echo x\\n")
        self.assertEqual(done.stdout, "x\n")

    def test_errors_in_it_are_told_and_gradb_goes_on(self):
        done = self.with_rc("nonsense\n", "--batch", "-ex", "echo x\\n")
        self.assertRegex(done.stderr, r'gradbrc:1: there is no command "nonsense"')
        self.assertEqual(done.stdout, "x\n")
        self.assertEqual(done.returncode, 0)

    def test_output_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "out")
            done = gradb("--batch", "-ex", f"show version > {path}", "-ex", f"show version >> {path}")
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(path.read_text(encoding="utf-8").splitlines()), 2)


class Pipe(unittest.TestCase):
    def test_commands_come_from_a_pipe(self):
        done = gradb(*trainer("--steps", "9"), input="step\nprint $\nstep 2\nnonsense\nquit\n")
        self.assertEqual(done.returncode, 0)
        self.assertIn("Stopped at the end of step 3.", done.stdout)
        self.assertIn("nonsense", done.stderr)

    def test_a_nul_byte_is_told(self):
        done = gradb(input="echo a\0b\\n\necho c\\n\n")
        self.assertEqual(done.stdout, "c\n")
        self.assertEqual(done.stderr, "error: the line contains a NUL byte and is skipped\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "nul.gdb")
            path.write_bytes(b"echo a\0b\n")
            done = gradb("--batch", "-x", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"nul\.gdb:1: the line contains a NUL byte")

    def test_a_silent_body_that_goes_on_says_nothing(self):
        done = gradb(*trainer("--steps", "5"),
                     input="break Softmax-op10\ncommands\nsilent\ncontinue\nend\ncontinue\n")
        self.assertEqual(done.stdout.count("Continuing."), 1)
        self.assertIn("The training ended.", done.stdout)

    def test_signals_are_answered_where_nobody_reads(self):
        """A full pipe has the output wait, but neither Ctrl-C nor the end. One that was closed is the end."""
        args = [str(harness.GRADB), "--batch", "-nx", *["-ex", "help compare"] * 40]
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            reader, writer = os.pipe()
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
            with subprocess.Popen(args, stdout=writer, stderr=subprocess.DEVNULL) as run:
                harness.wait_for("the pipe to be full", lambda: not select.select([], [writer], [], 0)[1])
                run.send_signal(number)
                try:
                    self.assertEqual(run.wait(timeout=harness.DEADLINE), status)
                finally:
                    run.kill()
            os.close(reader)
            os.close(writer)
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            run.stdout.close()
            self.assertEqual((run.stderr.read(), run.wait(timeout=harness.DEADLINE)), (b"", 1))

    def test_a_trainer_killed_while_a_print_waits(self):
        with harness.Gradb("-nx", command=trainer("--steps", "1000000")) as run:
            pid = int(run.expect(r", pid (\d+)\.").group(1))
            run.run("step", "end of step 1")
            stand_still(pid)  # it cannot answer
            run.send("print Default/network/head.bias")
            os.kill(pid, signal.SIGKILL)
            run.expect("error: .*gone|error: .*lost")
            run.run("info target", r"state +lost")
            self.assertEqual(run.finish(), 0)

    def test_the_trainers_output_is_apart(self):
        done = gradb(*trainer("--steps", "9", "--log-every", "1"), input="step 3\ninfo log\n")
        before, _, after = done.stdout.partition("Stopped at the end of step 3.")
        self.assertNotIn("step 1 loss", before)
        self.assertIn("step 1 loss", after)

    def test_ctrl_c_interrupts_the_trainer_and_not_gradb(self):
        with harness.Gradb("-nx", command=trainer("--steps", "1000000")) as run:
            run.expect("Stopped before the first step")
            run.run("continue", "Continuing")
            run.interrupt()
            run.expect("Interrupted")
            run.run("step", "Stopped at the end of step")
            self.assertEqual(run.finish(), 0)

    def test_background_runs_and_interrupt(self):
        with harness.Gradb("-nx", command=trainer("--steps", "1000000")) as run:
            run.expect("Stopped before the first step")
            run.send("continue &")
            run.run("info target", r"state +running")
            run.run("print Default/network/head.bias", "error: [^\\n]*running|error: [^\\n]*runs")
            run.run("interrupt", "Interrupted")
            run.run("info target", r"state +stopped")
            self.assertEqual(run.finish(), 0)

    def test_sigterm_is_an_orderly_end(self):
        with harness.Gradb("-nx", command=trainer("--steps", "1000000")) as run:
            run.expect("Stopped before the first step")
            run.run("continue &", "Continuing")
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.process.wait(timeout=harness.DEADLINE), 128 + signal.SIGTERM)

    def test_every_json_line_is_an_object(self):
        done = gradb("--json", *trainer("--steps", "9"),
                     input="step\nprint Default/network/head.bias\ninfo graph\nnonsense\nkill\n")
        types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
        for wanted in ("connected", "stopped", "run", "tensor", "graph", "error"):
            self.assertIn(wanted, types)
        self.assertEqual(done.stderr, "")

    def test_run_starts_again(self):
        done = gradb(*trainer("--steps", "9"), input="step 2\nrun\nstep\n")
        self.assertEqual(done.stdout.count("Starting program"), 2)
        self.assertIn("Stopped at the end of step 1.", done.stdout)

    def test_detach_lets_it_run_on(self):
        with tempfile.TemporaryDirectory() as folder:
            done_file = pathlib.Path(folder, "done")
            script = f'"$@"; touch {done_file}'
            done = gradb("run", "--", "/bin/sh", "-c", script, "sh", str(harness.CHARLM), *SMALL,
                         "--steps", "200", "--log-every", "1", input="step\ndetach\nquit\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            harness.wait_for("the end of the training", done_file.exists)


class Listen(unittest.TestCase):
    """Training processes that come by themselves."""

    def trainer(self, port, *args):
        process = subprocess.Popen([str(harness.CHARLM), *SMALL, *args], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, GRADB_ADDRESS=f"127.0.0.1:{port}"))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_two_trainers(self):
        with harness.Gradb("-nx") as run:
            port = run.wait_listening()
            self.trainer(port, "--steps", "1000000")
            run.expect(r"Connected: training process 1")
            run.expect("before the first step")
            self.trainer(port, "--steps", "1000000")
            run.expect(r"Connected: training process 2")
            run.expect(r"\[2\] .*before the first step")
            run.run("rank", r"\[Training process 1, ")
            run.run("step", r"\[1\] Stopped at the end of step 1\.")
            run.run("rank 2", r"\[Training process 2, ")
            run.run("step 2", r"\[2\] Stopped at the end of step 2\.")
            run.send("rank all step")
            run.expect(r"\[1\] Stopped at the end of step 2\.")
            run.expect(r"\[2\] Stopped at the end of step 3\.")
            run.run("rank 7", "error: there is no session 7")
            run.run("info ranks", r"\*\s+2\s")
            self.assertEqual(run.finish(), 0)

    def test_a_lost_trainer_is_told_and_stays_readable(self):
        with harness.Gradb("-nx") as run:
            process = self.trainer(run.wait_listening(), "--steps", "1000000")
            run.expect("before the first step")
            run.run("step", "end of step 1")
            run.run("print Default/network/head.bias[:2]", r"^\$1 = ")
            run.run("continue", "Continuing")
            process.kill()
            run.expect("The training process was lost")
            run.run("print $1", r"float32 \(2,\)")
            run.run("step", "error: the training process has ended")
            self.trainer(run.port, "--steps", "1000000")
            run.expect("Connected: training process 2")
            run.expect("before the first step")
            run.run("step", "end of step 1")
            self.assertEqual(run.finish(), 0)

    def test_a_second_gradb_is_told_that_the_port_is_taken(self):
        with harness.Gradb("-nx") as run:
            port = run.wait_listening()
            done = harness.run_gradb("-q", "-nx", "--batch", "--listen", f"127.0.0.1:{port}", "listen")
            self.assertEqual(done.returncode, 3)
            self.assertIn("in use", done.stderr)
            self.assertEqual(run.finish(), 0)

    def test_in_batch_mode_the_first_trainer_is_waited_for(self):
        with harness.Gradb("-nx", "--batch", "-ex", "step 2", "-ex", "detach") as run:
            process = self.trainer(run.wait_listening(), "--steps", "50")
            run.expect(r"end of step 2\.")
            self.assertEqual(run.process.wait(timeout=harness.DEADLINE), 0)
            self.assertEqual(process.wait(timeout=harness.DEADLINE), 0)


class Terminal(unittest.TestCase):
    """gradb on a pseudo terminal."""

    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.seen = ""

    def start(self, *args, recommend="off"):
        master, slave = pty.openpty()
        rc = pathlib.Path(self.home.name, "config", "gradb", "gradbrc")
        rc.parent.mkdir(parents=True, exist_ok=True)
        rc.write_text(f"set recommend {recommend}\n", encoding="utf-8")
        env = dict(os.environ, HOME=self.home.name, XDG_STATE_HOME=self.home.name + "/state",
                   XDG_CONFIG_HOME=self.home.name + "/config", TERM="xterm", LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(
            [str(harness.GRADB), "--listen", "127.0.0.1:0", *args], stdin=slave, stdout=slave,
            stderr=slave, env=env, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.master = master
        self.addCleanup(self.stop)

    def stop(self):
        harness.end_all_of(self.home.name)
        self.process.wait()
        os.close(self.master)
        self.home.cleanup()

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern, deadline=None):
        """Waits until the text after the last match holds the pattern."""
        end = time.monotonic() + (deadline or harness.DEADLINE)
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            left = end - time.monotonic()
            ready = select.select([self.master], [], [], max(0, left))[0] if left > 0 else []
            if not ready:
                raise AssertionError(f"no {pattern!r} in what follows: {self.seen[-2000:]!r}")
            try:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
            except OSError as err:
                raise AssertionError(f"the terminal closed; at the end: {self.seen[-2000:]!r}") from err

    def test_greeting_prompt_and_quit(self):
        self.start()
        self.expect(r"gradb \d+\.\d+\.\d+. Type \"help\"")
        self.expect(r"\(gradb\) ")
        self.type("quit\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)

    def test_the_recommended_watchpoints_are_offered_once(self):
        self.start("-q", *trainer("--steps", "50"), recommend="ask")
        self.expect(r"first step\.\r\nSet the \d recommended watchpoints\? \(y or n\) ")
        self.type("\r")
        self.expect(r"Please answer y or n")
        self.type("y\r")
        self.expect(r"Watchpoint \d: TO on all: \d+ nodes")
        self.expect(r"\(gradb\) ")
        self.type("info breakpoints\r")
        self.expect(r"TO on all\r\n(?s:.*)\(gradb\) ")

    def test_what_was_typed_before_the_question_is_not_eaten(self):
        """Lines that begin as an answer does, too."""
        self.start("-q", recommend="ask")
        self.expect(r"\(gradb\) ")
        program = " ".join(str(word) for word in trainer("--steps", "50")[2:])
        self.type(f"run -- {program}\rnext\rinfo watchpoints\r")
        self.expect(r"Set the \d recommended watchpoints\? \(y or n\) Not an answer but a command: assumed n\.")
        self.expect(r"\"recommend\" shows them")
        self.expect(r"\(gradb\) next\r\nstep 1, forward, Default(?s:.*)\(gradb\) info watchpoints\r\nNo watchpoints\.\r\n(?s:.*)\(gradb\) ")

    def test_who_listens_is_asked_when_a_training_comes(self):
        self.start("-q", "--listen", "127.0.0.1:0", "listen", recommend="ask")
        port = self.expect(r"Listening on 127\.0\.0\.1:(\d+)").group(1)
        self.expect(r"\(gradb\) ")
        training = subprocess.Popen([str(harness.CHARLM), "--data", str(DATA), "--steps", "50"], stdout=subprocess.DEVNULL,
                                    env=dict(os.environ, GRADB_ADDRESS=f"127.0.0.1:{port}"))
        try:
            self.expect(r"first step\.(?s:.*)Set the \d recommended watchpoints\? \(y or n\) ")
            self.type("y\r")
            self.expect(r"Watchpoint \d: TO on all: \d+ nodes(?s:.*)\(gradb\) ")
            self.type("step\r")
            self.expect(r"end of step 1\.(?s:.*)\(gradb\) ")
        finally:
            training.kill()
            training.wait()

    def test_who_says_no_is_not_asked_again(self):
        self.start("-q", recommend="ask")
        self.expect(r"\(gradb\) ")
        program = " ".join(str(word) for word in trainer("--steps", "50")[2:])
        for answer in ("n\r", None):
            self.type(f"run -- {program}\r")
            if answer:
                self.expect(r"Set the \d recommended watchpoints\? \(y or n\) ")
                self.type(answer)
                self.expect(r"\"recommend\" shows them")
            match = self.expect(r"(?s:.*)\(gradb\) ")
            self.assertNotIn("Set the", match.group())
            self.type("info watchpoints\r")
            self.expect(r"No watchpoints\.\r\n(?s:.*)\(gradb\) ")
            self.type("kill\r")
            self.expect(r"\(y or n\) ")
            self.type("y\r")
            self.expect(r"has ended\.\r\n(?s:.*)\(gradb\) ")

    def test_recommend_on_sets_them_without_a_question(self):
        self.start("-q", *trainer("--steps", "50"), recommend="on")
        match = self.expect(r"first step\.\r\n(?s:.*)\(gradb\) ")
        self.assertNotIn("(y or n)", match.group())
        self.assertRegex(match.group(), r"Watchpoint \d: TO on all: \d+ nodes")
        self.type("recommend yes\r")
        self.expect(r"All recommended watchpoints are already set\.")

    def test_recommend_off_says_nothing(self):
        self.start("-q", *trainer("--steps", "50"), recommend="off")
        match = self.expect(r"first step\.\r\n(?s:.*)\(gradb\) ")
        self.assertNotIn("recommend", match.group())

    def test_nobody_is_asked_where_watchpoints_are_set(self):
        self.start("-q", "-ex", "watch TO on all", *trainer("--steps", "50"), recommend="ask")
        match = self.expect(r"Watchpoint 1: TO on all(?s:.*)\(gradb\) ")
        self.assertNotIn("recommended", match.group())

    def test_end_of_file_quits(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("\x04")
        self.expect("quit")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)

    def test_tab_completes(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("info setti\t\r")
        self.expect("info settings")
        self.expect("Setting +Value")

    def test_node_names_complete(self):
        self.start("-q", "-ex", "set pagination off", *trainer("--steps", "5"))
        self.expect(r"first step[^\n]*\n(?s:.*)\(gradb\) ")
        self.type("whatis Default/network/he\t")
        self.expect("ad")
        self.type(".w\t\r")
        self.expect(r"type = float32")

    def test_ctrl_c_clears_the_line(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("nonsense")
        self.expect("nonsense")
        self.type("\x03")
        self.expect(r"\^C[^(]*\(gradb\) ")
        self.type("echo alive\\n\r")
        self.expect("alive\r?\n")
        self.assertIsNone(self.process.poll())

    def test_ctrl_c_interrupts_the_trainer(self):
        self.start("-q", *trainer("--steps", "1000000"))
        self.expect("first step")
        self.expect(r"\(gradb\) ")
        self.type("continue\r")
        self.expect(r"Continuing\.\r\n")
        self.type("\x03")
        self.expect("Interrupted")
        self.expect(r"\(gradb\) ")
        self.type("step\r")
        self.expect("Stopped at the end of step")
        self.assertIsNone(self.process.poll())

    def test_a_second_ctrl_c_gives_the_prompt_back(self):
        self.start("-q", *trainer("--steps", "1000000"))
        pid = int(self.expect(r", pid (\d+)\.").group(1))
        self.expect(r"\(gradb\) ")
        self.type("continue\r")
        self.expect(r"Continuing\.\r\n")
        stand_still(pid)  # it hears nothing now
        self.type("\x03")
        self.expect("press Ctrl-C again")
        self.type("\x03")
        self.expect("continues in the background")
        self.expect(r"\(gradb\) ")
        os.kill(pid, signal.SIGCONT)
        self.expect("Interrupted")  # the first one arrives after all
        self.type("step\r")
        self.expect("Stopped at the end of step")
        self.expect(r"\(gradb\) ")
        self.type("quit\r")
        self.expect(r"\(y or n\) ")
        self.type("y\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)  # nothing failed

    def test_quit_asks_while_a_program_runs(self):
        self.start("-q", *trainer("--steps", "1000000"))
        self.expect("first step")
        self.expect(r"\(gradb\) ")
        self.type("quit\r")
        self.expect(r"Quit anyway\? \(y or n\) ")
        self.type("n\r")
        self.expect(r"\(gradb\) ")
        self.type("quit\r")
        self.expect(r"\(y or n\) ")
        self.type("y\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)

    def test_stops_are_told_above_the_prompt(self):
        self.start("-q", *trainer("--steps", "1000000"))
        self.expect("first step")
        self.expect(r"\(gradb\) ")
        self.type("step 30 &\r")
        self.expect(r"\(gradb\) ")
        self.expect(r"Stopped at the end of step 30\.")
        self.expect(r"\(gradb\) ")

    def test_long_output_pauses(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("help all\r")
        self.expect("-- Enter: more")
        self.type("q\r")
        self.expect(r"\(gradb\) ")
        self.type("help all\r")
        self.expect("-- Enter: more")
        self.type("c\r")
        self.expect(r"complete +List ")
        self.expect(r"\(gradb\) ")

    def test_history_is_kept_and_private(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("echo remember me\\n\r")
        self.expect("remember me\r\n")
        self.expect(r"\(gradb\) ")
        self.type("quit\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)
        path = pathlib.Path(self.home.name, "state", "gradb", "history")
        self.assertIn("echo remember me", path.read_text(encoding="utf-8"))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_bodies_have_their_own_prompt(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("define hello\r")
        self.expect(">")
        self.type("echo hi there\\n\r")
        self.expect(">")
        self.type("end\r")
        self.expect(r"\(gradb\) ")
        self.type("hello\r")
        self.expect("hi there\r\n")

    def test_tui_enable_opens_the_panes_and_disable_closes_them(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("tui enable\r")
        self.expect(r"\x1b\[\?1049h")  # the terminal's second screen
        self.type("tui disable\r")
        self.expect(r"\x1b\[\?1049l")
        self.type("echo back again\\n\r")
        self.expect("back again\r\n")
        self.type("quit\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)

    def panes_until_quit(self, altscreen):
        """What the terminal gets from the panes' last picture on."""
        self.start("-q", "--tui", "-ex", f"set altscreen {altscreen}")
        self.expect("no training process is connected")
        self.expect(r"gradb\) ")
        self.type("quit\r")
        with self.assertRaisesRegex(AssertionError, "the terminal closed"):
            self.expect(r"(?!)")  # all that comes
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)
        return self.seen

    def test_the_panes_leave_the_second_screen(self):
        self.assertIn("\x1b[?1049l", self.panes_until_quit("on"))

    def test_without_a_second_screen_the_last_picture_stays(self):
        end = self.panes_until_quit("off")
        self.assertNotIn("\x1b[?1049l", end)
        self.assertNotIn("\x1b[2J", end)

    def test_the_key_of_the_panes_at_the_first_prompt(self):
        self.start("-q")
        for key in ("\x18a", "\x18\x01"):
            self.expect(r"\(gradb\) ")
            self.type(key)
            self.expect(r"\x1b\[\?1049h")
            self.type("\x18a")
            self.expect(r"\x1b\[\?1049l")
        self.type("echo back again\\n\r")
        self.expect("back again\r\n")

    def test_a_built_in_name_is_taken_after_a_question(self):
        self.start("-q")
        self.expect(r"\(gradb\) ")
        self.type("alias echo = help\r")
        self.expect(r'Really redefine the built-in command "echo"\?')
        self.type("n\r")
        self.expect(r"\(gradb\) ")
        self.type("echo still here\\n\r")
        self.expect("\rstill here\r\n")

    def test_quit_after_detach_asks_nothing(self):
        self.start("-q", *trainer("--steps", "100"))
        self.expect(r"first step(?s:.*)\(gradb\) ")
        self.type("detach\r")
        self.expect(r"continues\.\r\n(?s:.*)\(gradb\) ")
        self.type("quit\r")
        self.assertEqual(self.process.wait(timeout=harness.DEADLINE), 0)

    def test_an_empty_line_repeats_the_step(self):
        self.start("-q", *trainer("--steps", "100"))
        self.expect("first step")
        self.expect(r"\(gradb\) ")
        self.type("step\r")
        self.expect("end of step 1")
        self.expect(r"\(gradb\) ")
        self.type("\r")
        self.expect("end of step 2")


class Demo(unittest.TestCase):
    def test_the_tour_finds_the_fault(self):
        done = harness.run_gradb("demo", input="")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        self.assertIn("(gradb) watch TO on all", done.stdout)
        self.assertRegex(done.stdout, r"Log-op\d+ \(Log\) \[TO\].*origin")
        self.assertIn("takes the logarithm of 0", done.stdout)
        self.assertTrue(done.stdout.rstrip().endswith("without an epsilon to guard it."))

    def test_a_demo_that_is_not_there(self):
        done = harness.run_gradb("demo", input="", env={"GRADB_DEMO": "/nonexistent/charlm"})
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^error: [^\n]+\n$")


class Generated(unittest.TestCase):
    def test_the_manual_page_is_clean(self):
        page = harness.run_gradb("--generate", "man").stdout
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(page)
            file.flush()
            done = subprocess.run(["man", "--warnings", "-l", file.name], capture_output=True, text=True,
                                  env=dict(os.environ, LC_ALL="C.UTF-8", MANPAGER="cat"), check=False)
        if done.returncode == 127:
            self.skipTest("no man here")
        self.assertEqual(done.stderr, "")
        self.assertIn("run-to PLACE", done.stdout)
        self.assertRegex(done.stdout, r"attach\s+\[NAME\]")
        self.assertRegex(done.stdout, r"\n +Examples:\n")

    def test_bash_completion_works(self):
        script = harness.run_gradb("--generate", "bash").stdout
        ask = script + '\nCOMP_WORDS=(gradb --ba); COMP_CWORD=1; _gradb; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "--batch\n")
        self.assertEqual(done.stderr, "")

    def test_the_others_name_every_option(self):
        for shell in ("zsh", "fish"):
            text = harness.run_gradb("--generate", shell).stdout
            for word in ("batch", "listen", "json", "color", "sessions", "attach", "tensor-graph"):
                self.assertIn(word, text)
        commands = json.loads(harness.run_gradb("--generate", "json-commands").stdout)
        self.assertIn("step", [command["name"] for command in commands])
        for command in commands:
            self.assertTrue(command["usage"] and command["summary"] and command["help"], command)


if __name__ == "__main__":
    harness.main()
