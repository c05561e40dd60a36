# SPDX-License-Identifier: GPL-3.0-or-later
"""A training process that means harm: messages that cost much, connections that do nothing, names that lead
elsewhere."""
import os
import pathlib
import re
import socket
import tempfile
import unittest
import zipfile

import grpc
import numpy

import harness
import test_protocol
from wire import field

pb = test_protocol.pb
EMPTY = 15 << 19  # elements of two bytes: 15 MiB
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Costs(test_protocol.Case):
    """What a message costs is known before it is paid."""

    def peak(self):
        status = pathlib.Path(f"/proc/{self.gradb.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) << 10

    def refused(self, trainer, data):
        before = self.peak()
        trainer.say_bytes(data)
        code, text = trainer.status()
        self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        self.assertLess(self.peak() - before, 120 << 20)

    def test_a_hello_of_many_facts(self):
        self.refused(self.trainer(), field(1, field(19, b"") * (EMPTY * 2 // 3)))
        self.refused(self.trainer(), field(1, field(19, b"") * 5000))
        trainer = self.trainer()
        trainer.hello(facts=[pb.Attr(name=f"fact {i}", value="x") for i in range(1000)])
        self.assertIsNotNone(trainer.hear("welcome"))

    def test_messages_of_many_empty_elements(self):
        inputs = field(2, field(3, field(7, b"") * EMPTY))
        costs, times = field(17, field(2, b"") * EMPTY), field(17, field(2, field(2, b"\0" * 2 * EMPTY)))
        nodes, lines = field(2, field(3, b"") * EMPTY), field(10, field(1, b"") * EMPTY)
        unknown = field(12, field(99, b"") * (EMPTY * 2 // 3))
        for kind, data in enumerate((inputs, costs, times, nodes, lines, unknown)):
            with self.subTest(kind=kind):
                self.refused(self.standing(), data)

    def test_a_log_of_many_lines(self):
        trainer = self.standing()
        trainer.say(log=pb.Log(lines=["x"] * 100000, dropped=5))
        trainer.say(log=pb.Log(lines=["the last"]))
        self.gradb.expect("the last")
        self.assertIn(f"({100000 - 65536 + 5} lines were lost)", self.gradb.text())

    def test_a_graph_of_a_usual_size(self):
        trainer = self.standing()
        nodes = [pb.Node(id=i, name=f"net/block{i}/op", type="Op", inputs=[pb.Input(node=1)] * 3,
                         outputs=[pb.Output(dtype=pb.FLOAT32, shape=[2, 3])],
                         frames=[pb.Frame(file="a.py", line=i, function="f")] * 4) for i in range(3, 20003)]
        trainer.say(graph=pb.GraphChunk(graph="net", nodes=nodes, commit=True))
        self.gradb.send("info target")
        harness.wait_for("the graph", lambda: self.gradb.run("info graph", '"type":"graph.*').group().find("20002") > 0)


class MindSporeCosts(test_protocol.Case):
    """The same of a MindSpore process, whose graph comes in pieces."""

    peak = Costs.peak

    def send_graph(self, *pieces):
        channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", options=(("grpc.max_send_message_length", -1),))
        self.addCleanup(channel.close)
        send = channel.stream_unary("/debugger.EventListener/SendGraph", request_serializer=None,
                                    response_deserializer=None)
        send(iter([field(1, piece) for piece in pieces]), timeout=harness.DEADLINE)

    def test_graphs_of_many_empty_elements(self):
        named = field(2, b"1") + field(3, b"A")
        kinds = {"nodes": field(1, b"") * EMPTY, "parameters": field(3, b"") * EMPTY, "constants": field(5, b"") * EMPTY,
                 "numbered nodes": field(1, field(2, b"1")) * (EMPTY * 2 // 5),
                 "attributes": field(1, named + field(5, b"") * EMPTY),
                 "inputs": field(1, named + field(1, b"") * EMPTY),
                 "outputs": field(1, named + field(6, b"\x08\x13" + field(4, field(1, b"") * EMPTY))),
                 "unknown": field(99, b"") * (EMPTY * 2 // 3)}
        for kind, data in kinds.items():
            with self.subTest(kind=kind):
                before = self.peak()
                self.send_graph(data[:8 << 20], data[8 << 20:])
                self.gradb.send("info target")
                self.record("target")
                self.assertLess(self.peak() - before, 240 << 20)

    def test_a_large_graph_of_a_usual_kind(self):
        count = 100000
        shape = field(1, b"\x08\x02") + field(1, b"\x08\x03")
        output = field(6, b"\x08\x12" + field(3, b"\x08\x2b" + field(2, shape)))
        nodes = [field(1, field(2, b"%d" % i) + field(3, b"Add") + field(4, b"Default/block%d" % (i % 100)) +
                       field(8, b"Default/block%d/Add-op%d" % (i % 100, i)) + field(1, field(1, b"%d" % max(1, i - 1))) +
                       field(1, field(1, b"%d" % max(1, i - 2))) + output) for i in range(1, count + 1)]
        data = b"".join(nodes) + field(2, b"kernel_graph_0")
        self.send_graph(*(data[at:at + (3 << 20)] for at in range(0, len(data), 3 << 20)))
        self.gradb.send("info graph")
        self.assertIn(f'"nodes":{count}', self.gradb.expect('"type":"graph').string)


class Connections(test_protocol.Case):
    """A place is for those that use it."""

    def test_connections_without_a_call_are_closed(self):
        greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
        socks = [socket.create_connection(("127.0.0.1", self.port), harness.DEADLINE) for _ in range(20)]
        for sock in socks:
            self.addCleanup(sock.close)
            sock.sendall(greeting)
        trainer = self.standing()
        for sock in socks:
            while data := sock.recv(65536):
                if data[3:4] == b"\x06":
                    sock.sendall(data[:4] + b"\x01" + data[5:])  # a PING is answered: it is alive
        self.gradb.send("continue")
        self.assertIsNotNone(trainer.hear("run"))  # one with a call stays


class Names(test_protocol.Case):
    """Names come from the training process."""

    def named(self, *names):
        trainer = self.trainer()
        trainer.hello()
        self.assertIsNotNone(trainer.hear("welcome"))
        trainer.say(graph=pb.GraphChunk(graph="net", commit=True, nodes=[
            pb.Node(id=i + 1, name=name, type="Parameter", kind=pb.KIND_WEIGHT,
                    outputs=[pb.Output(dtype=pb.FLOAT32, shape=[3, 4])]) for i, name in enumerate(names)]))
        trainer.stand()
        self.record("stopped")
        return trainer

    def test_members_of_an_archive(self):
        names = ["../../../../tmp/x", "/etc/x", "a\x1b[2Jb", "a\\..\\b", "net//x", "./y", "c\u202ed", "c\u009bd",
                 "net/ok", "..", "net/.."]
        trainer = self.named(*names)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.npz")
            self.gradb.send(f"save all {path}")
            for _ in names:
                trainer.answer_fetch(test_protocol.WEIGHT)
            saved = self.record("saved")
            self.assertEqual((saved["count"], saved["missing"], saved["cleaned"]), (len(names), 0, len(names) - 1))
            members = zipfile.ZipFile(path).namelist()
            self.assertEqual(len(set(members)), len(names))
            for member in members:
                self.assertNotRegex(member, UNSAFE)
                self.assertNotIn("\\", member)
                self.assertFalse(member.startswith("/"), member)
                self.assertFalse({"", ".", ".."} & set(member[:-len(".npy")].split("/")), member)
            self.assertIn("net/ok.npy", members)
            with numpy.load(path) as file:
                numpy.testing.assert_array_equal(file["net/ok"], test_protocol.WEIGHT)

    def test_what_moves_or_reorders_a_line_is_escaped(self):
        names = ["net/a\u009b31mb", "net/c\u202ed", "net/e\u2067f", "net/g\u061ch", "net/i\u200fj", "net/k\x7fl"]
        trainer = self.named(*names)
        trainer.say(log=pb.Log(lines=["line \u009b31m \u202e end"]))
        self.gradb.expect("line .* end")
        seen = {node["node"] for node in self.nodes()}
        self.assertLessEqual(set(names), seen)  # a reader of the JSON gets them as they are
        self.gradb.send("print net/nothing\u202e\u009b")
        self.record("error")
        self.assertNotRegex(self.gradb.text(), UNSAFE)

    def nodes(self):
        self.gradb.send("info nodes")
        return self.record("nodes")["nodes"]


class Archives(unittest.TestCase):
    """A small file that unpacks to much."""

    def write_bomb(self, path, rows, names):
        """Members of zeros, 1 MiB a row, whose rows begin with their number."""
        row = numpy.zeros(1 << 18, dtype="<f4")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                with archive.open(name + ".npy", "w") as member:
                    numpy.lib.format.write_array_header_1_0(
                        member, {"descr": "<f4", "fortran_order": False, "shape": (rows, row.size)})
                    for i in range(rows):
                        row[0] = i
                        member.write(row.tobytes())
        self.assertLess(path.stat().st_size, rows * len(names) << 11)

    def peak_after(self, path, *commands):
        args = harness.typed(*commands, "shell grep VmHWM /proc/$PPID/status")
        keeps_nothing = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        done = harness.run_gradb("--batch", "--json", *args, "open", path, env={"ASAN_OPTIONS": keeps_nothing})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, int(re.search(r"VmHWM:\D*(\d+)", done.stdout).group(1)) << 10

    def test_a_bomb_that_is_read_back_and_forth(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.npz")
            self.write_bomb(path, 384, ["a"])
            rows = [(i * 151) % 384 for i in range(40)]
            out, peak = self.peak_after(path, *(f"print a[{i}, :2]" for i in rows))
            self.assertEqual(re.findall(r'"values":\[([\d.]+),0[.0]*\]', out), [str(i) + ".0" for i in rows])
            self.assertLess(peak, 100 << 20)

    def test_a_bomb_of_many_members(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.npz")
            self.write_bomb(path, 65, [f"m{i}" for i in range(12)])
            out, peak = self.peak_after(path, "first-nonfinite", *(f"print m{i}[64, :2]" for i in range(12)))
            self.assertEqual(len(re.findall(r"\[64[.0]*,0[.0]*\]", out)), 12, out)
            self.assertLess(peak, 240 << 20)

    def test_a_large_member_is_read_as_it_is_inflated(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.npz")
            values = numpy.arange(50_000_000, dtype=numpy.int32) % 1000
            values[-1] = 12345
            numpy.savez_compressed(path, a=values)
            done = harness.run_gradb("--batch", "--json", "-ex", "stats a", "-ex", "print a[49999998:]", "-ex",
                                     "print a[5:7]", "-ex", "shell grep VmHWM /proc/$PPID/status", "open", path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn('"max":12345', done.stdout)
            self.assertIn("[998,12345]", done.stdout)
            self.assertIn("[5,6]", done.stdout)
            peak = int(re.search(r"VmHWM:\D*(\d+)", done.stdout).group(1)) << 10
            self.assertLess(peak, values.nbytes * 2 // 3)  # and not the whole
            data = bytearray(path.read_bytes())
            at = data.rindex(b"PK\x01\x02") + 16  # its CRC in the directory
            data[at] ^= 1
            path.write_bytes(data)
            done = harness.run_gradb("--batch", "-ex", "stats a", "open", path)
            self.assertIn("damaged", done.stderr + done.stdout)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    harness.main()
