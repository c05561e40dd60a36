# SPDX-License-Identifier: GPL-3.0-or-later
"""`gradb mcp`: with the official client, and message by message."""
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import termios
import threading
import unittest

import harness
import venvs

PYTHON = venvs.python("tools")
CLIENT = pathlib.Path(__file__).with_name("mcp_client.py")
CHARLM = ["run", "--", str(harness.CHARLM), "--seed", "7", *harness.SMALL, "--batch", "4"]
RUN = ["--listen", "127.0.0.1:0", "mcp", "--allow-run", *CHARLM]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Server:
    """A `gradb mcp` to which messages are sent; every line of its stdout must be a message."""

    def __init__(self, test, *args, hello=True, stdout=subprocess.PIPE):
        self.home = harness.folder_of(test)
        env = dict(os.environ, HOME=str(self.home), XDG_CONFIG_HOME=f"{self.home}/config", HARNESS_HOME=str(self.home),
                   XDG_STATE_HOME=f"{self.home}/state", LC_ALL="C.UTF-8", TERM="dumb")
        self.process = subprocess.Popen([str(harness.GRADB), "-nx", *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=stdout, stderr=subprocess.PIPE, env=env)
        self.errors = []
        threading.Thread(target=lambda: self.errors.append(self.process.stderr.read()), daemon=True).start()
        test.addCleanup(self.close)
        self.timer = threading.Timer(harness.DEADLINE, self.process.kill)
        self.timer.start()
        self.notes = []
        self.number = 0
        if hello:
            self.hello = self.ask("initialize", HELLO)

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        harness.end_all_of(self.home)

    def send_bytes(self, data):
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, method, params=None, **more):
        self.send_bytes(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode())

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"gradb mcp ended: {self.process.wait()} {self.errors}")
        return json.loads(line)

    def answer_to(self, number):
        while True:
            message = self.receive()
            if isinstance(message, dict) and message.get("id", "none") == number and "method" not in message:
                return message
            self.notes.append(message)

    def ask(self, method, params=None):
        self.number += 1
        self.send(method, params, id=self.number)
        return self.answer_to(self.number)

    def call(self, name, **arguments):
        """The result of a tool: (is it an error, text, record)."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        return result["isError"], result["content"][0]["text"], result["structuredContent"]


class Protocol(unittest.TestCase):
    def test_versions(self):
        for asked, given in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
                             ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")):
            server = Server(self, "mcp", hello=False)
            answer = server.ask("initialize", dict(HELLO, protocolVersion=asked))["result"]
            self.assertEqual(answer["protocolVersion"], given)
            self.assertEqual(answer["serverInfo"]["name"], "gradb")
            server.process.stdin.close()
            self.assertEqual(server.process.wait(timeout=harness.DEADLINE), 0)

    def test_each_request_may_say_its_version(self):
        server = Server(self, "mcp", hello=False)
        meta = dict(MODERN)
        found = server.ask("server/discover", {"_meta": meta})["result"]
        self.assertIn("2026-07-28", found["supportedVersions"])
        tools = server.ask("tools/list", {"_meta": meta})["result"]
        self.assertEqual((tools["resultType"], tools["cacheScope"]), ("complete", "private"))
        meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
        error = server.ask("tools/list", {"_meta": meta})["error"]
        self.assertEqual(error["code"], -32022)
        self.assertEqual(error["data"]["requested"], "2099-01-01")

    def test_bad_messages_get_one_answer_each(self):
        server = Server(self, "mcp", hello=False)
        self.assertEqual(server.ask("tools/list")["error"]["code"], -32600)
        self.assertEqual(server.ask("ping")["result"], {})
        self.assertEqual(server.ask("initialize")["error"]["code"], -32602)
        server.ask("initialize", HELLO)
        for data, code in ((b"{", -32700), (b"nonsense", -32700), (b"7", -32600), (b"[]", -32600), (b"[1,2]", -32600),
                           (b'{"jsonrpc":"2.0","id":1}', -32600), (b'{"id":1,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', -32700), (b"\x00\x01", -32700),
                           (b"[" * 5000, -32700), (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
                           (b"x" * (17 << 20), -32700)):
            server.send_bytes(data)
            self.assertEqual(server.receive()["error"]["code"], code, data[:80])
        server.send_bytes(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}')
        self.assertEqual(server.ask("ping")["result"], {})
        self.assertEqual(server.notes, [])  # what answers an answer never ends

    def test_ids_come_back_as_they_were(self):
        server = Server(self, "mcp")
        for number in ('"a"', "12345678901234567890", "-3", "1.5", '"\\u00e9"'):
            server.send_bytes(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number.encode())
            self.assertEqual(server.receive()["id"], json.loads(number))

    def test_batches_in_the_revision_that_has_them(self):
        server = Server(self, "mcp", hello=False)
        server.ask("initialize", dict(HELLO, protocolVersion="2025-03-26"))
        ping = {"jsonrpc": "2.0", "method": "ping"}
        tool = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "help", "arguments": {}}}
        server.send_bytes(json.dumps([dict(ping, id=1), ping, dict(tool, id=2), 7]).encode())
        answers = server.receive()
        self.assertEqual(sorted(str(a["id"]) for a in answers), ["1", "2", "None"])

    def test_a_stdout_that_does_not_block(self):
        """Another process may share the descriptor, and have set that."""
        ours, theirs = os.pipe()
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(theirs, False)
        server = Server(self, "mcp", hello=False, stdout=theirs)
        os.close(theirs)
        server.process.stdout = os.fdopen(ours, "rb")
        server.send("tools/list", {"_meta": MODERN}, id=1)
        size = bytearray(4)
        while int.from_bytes(size, sys.byteorder) < 4096 and server.process.poll() is None:
            fcntl.ioctl(ours, termios.FIONREAD, size)  # the answer is larger: until the pipe is full
        self.assertEqual(len(server.answer_to(1)["result"]["tools"]), 25)

    def test_wrong_arguments(self):
        server = Server(self, "mcp", "--allow-run")
        self.assertEqual(server.ask("tools/call")["error"]["code"], -32602)
        self.assertEqual(server.ask("tools/call", {"name": "nosuch"})["error"]["code"], -32602)
        self.assertEqual(server.ask("tools/call", {"name": "step", "arguments": [1]})["error"]["code"], -32602)
        for name, arguments, words in (
                ("step", {"n": "many"}, "whole number"), ("step", {"steps": 3}, 'no argument "steps"'),
                ("run-to", {}, '"node" is missing'), ("watch", {"exact": 1}, "true or false"),
                ("command", {}, '"line" is missing'), ("command", {"line": 3}, "is text"),
                ("step", {"timeout_s": -1}, "timeout_s"), ("step", {"max_bytes": 1}, "max_bytes"),
                ("step", {"cursor": "x"}, "cursor"), ("step", {"cursor": "7.0.0"}, "no longer kept"),
                ("print", {"tensor": ["a\nb"]}, "control character"), ("print", {"tensor": ["x" * 70000]}, "longer"),
                ("command", {"line": "commands 1\nsilent"}, ""), ("step", {}, "no training process"),
                ("info", {"subject": "nosuch"}, "nosuch"), ("run", {"program": "/no/such/program"}, "/no/such")):
            failed, text, record = server.call(name, **arguments)
            self.assertTrue(failed, (name, arguments, text))
            self.assertIn(words, text)
            self.assertEqual(text.count("error: "), 1, text)
            self.assertEqual(record["type"], "error")
        self.assertFalse(server.call("command", line="echo ok")[0])


class Session(unittest.TestCase):
    def test_only_messages_on_stdout(self):
        """The training's output and that of other programs goes elsewhere; each line here is parsed."""
        server = Server(self, *RUN, "--steps", "9")
        self.assertFalse(server.call("command", line="shell echo not a message")[0])
        failed, text, record = server.call("step", n=2)
        self.assertEqual((failed, record["step"], record["command"]), (False, 2, "step"))
        self.assertIn("loss = ", text)
        self.assertIn("step 1 loss", server.call("log")[1])
        file = server.home / "graph.txt"
        failed, text, record = server.call("command", line=f"info graph > {file}")
        self.assertEqual((failed, record["type"]), (False, "graph"))
        self.assertTrue(file.read_text().startswith("Nodes") or "nodes" in file.read_text())
        self.assertNotIn("{", file.read_text())

    def test_a_wait_that_is_too_long(self):
        server = Server(self, *RUN, "--steps", "100000000")
        failed, text, record = server.call("continue", timeout_s=0.2)
        self.assertFalse(failed, text)
        self.assertTrue(record["still_running"])
        self.assertEqual(record["state"], "running")
        self.assertIn("interrupt", text)
        self.assertTrue(server.call("stats", tensor="head.bias")[0])
        self.assertTrue(server.call("wait", timeout_s=0.2)[2]["still_running"])
        failed, text, record = server.call("interrupt")
        self.assertFalse(failed, text)
        self.assertFalse(server.call("stats", tensor="head.bias")[0])
        self.assertFalse(server.call("step")[0])

    def test_an_answer_has_all_that_happened(self):
        server = Server(self, *RUN, "--steps", "100000000")
        server.ask("resources/read", {"uri": "gradb://target"})  # has no events: they wait for the next answer
        watched = server.call("command", line="watch loss < 100")[2]
        self.assertIn("connected", [event["type"] for event in watched["events"]])
        server.call("command", line="commands 1\nprint 40 + 2\nend")
        server.call("continue", timeout_s=0)
        stopped = server.call("wait")[2]
        self.assertEqual(stopped["command"], "wait")
        self.assertIn(42, [event.get("value") for event in stopped["events"]], stopped)

    def test_cancelling_stops_the_training(self):
        server = Server(self, *RUN, "--steps", "100000000")
        server.send("tools/call", {"name": "continue", "arguments": {"timeout_s": 1000},
                                   "_meta": {"progressToken": "p"}}, id="c")
        while True:  # until it runs: the first progress
            note = server.receive()
            if note.get("method") == "notifications/progress":
                break
        self.assertEqual(note["params"]["progressToken"], "p")
        self.assertIn("step", note["params"]["message"])
        self.assertEqual(server.ask("ping")["result"], {})
        server.send("notifications/cancelled", {"requestId": "c"})
        self.assertFalse(server.call("stats", tensor="head.bias")[0])
        self.assertNotIn("c", [note.get("id") for note in server.notes])

    def test_interrupt_answers_both_calls(self):
        server = Server(self, *RUN, "--steps", "100000000")
        server.send("tools/call", {"name": "continue", "arguments": {"timeout_s": 1000},
                                   "_meta": {"progressToken": 1}}, id="c")
        while server.receive().get("method") != "notifications/progress":
            pass
        server.send("tools/call", {"name": "interrupt"}, id="i")
        first = server.answer_to("c")["result"]["structuredContent"]
        self.assertEqual((first["state"], first["reason"]), ("stopped", "interrupt"))
        self.assertFalse(server.answer_to("i")["result"]["isError"])

    def test_large_answers_come_in_pieces(self):
        server = Server(self, *RUN, "--steps", "9")
        server.call("step")
        whole = server.call("command", line="info nodes -a", max_bytes=1000000)
        self.assertNotIn("left_out", whole[2])
        text, nodes, cursor, pieces = "", [], None, 0
        while pieces == 0 or cursor:
            more = {"cursor": cursor} if cursor else {"line": "info nodes -a"}
            result = server.ask("tools/call", {"name": "command", "arguments": dict(more, max_bytes=2000)})["result"]
            record, piece = result["structuredContent"], result["content"][0]["text"]
            self.assertLessEqual(len(json.dumps(record, separators=(",", ":"))), 2400)
            self.assertLessEqual(len(piece.encode()), 2200)
            cursor = record.get("left_out", {}).get("cursor")
            text += piece.partition("[more is left out")[0]
            nodes += record.get("nodes", [])
            pieces += 1
        self.assertGreater(pieces, 3)
        self.assertEqual(nodes, whole[2]["nodes"])
        self.assertEqual(text, whole[1])

    def test_the_output_of_the_training_on_request(self):
        server = Server(self, *RUN, "--steps", "9")
        server.call("step")
        self.assertFalse([n for n in server.notes if n.get("method") == "notifications/message"])
        self.assertEqual(server.ask("logging/setLevel", {"level": "loud"})["error"]["code"], -32602)
        server.ask("logging/setLevel", {"level": "info"})
        server.call("step", n=3)
        server.call("log")
        lines = [n["params"]["data"] for n in server.notes if n.get("method") == "notifications/message"]
        self.assertTrue([line for line in lines if "loss" in line], lines)


class ReadOnly(unittest.TestCase):
    def test_nothing_is_changed(self):
        server = Server(self, "--listen", "127.0.0.1:0", "-ex", "step 2", "mcp", *CHARLM)
        names = [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]
        self.assertIn("why", names)
        self.assertFalse({"run", "continue", "step", "watch", "set"} & set(names))
        target = self.home_file(server, "x")
        for line in ("step", "run -- true", f"info graph > {target}", f"save . {target}", "shell true", "set lr = 1",
                     "kill", "dump x", "define x\nstep\nend\nx", "alias zz = step\nzz", "metric accuracy",
                     "info nodes | cat", "rank all step", "listen 0", "quit"):
            failed, text, _ = server.call("command", line=line)
            self.assertTrue(failed, (line, text))
            self.assertRegex(text, "error: .*--allow-run" if "|" not in line else "error: ")
        self.assertFalse(target.exists())
        self.assertFalse(server.call("stats", tensor="head.bias")[0])  # it was started, and stands
        self.assertFalse(server.call("help", command="watch")[0])
        self.assertFalse(server.call("info", subject="settings")[0])

    def home_file(self, server, name):
        return pathlib.Path(server.home, name)

    def test_a_dump_may_be_moved_in(self):
        folder = harness.folder_of(self)
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed(f"dump {folder / 'd'} --steps 1-3", "step 3"), *CHARLM, "--steps", "9")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        server = Server(self, "mcp", "open", folder / "d")
        failed, text, record = server.call("watch", condition="WC", on="weights")
        server_tools = [tool["name"] for tool in server.ask("tools/list", {"cursor": None})["result"]["tools"]]
        self.assertIn("step", server_tools)
        self.assertFalse(server.call("step")[0])
        self.assertEqual(server.ask("resources/read", {"uri": "gradb://nosuch"})["error"]["code"], -32002)
        error = server.ask("resources/read", {"uri": "gradb://node/no%20such%3Enode"})["error"]
        self.assertIn('no such>node', error["message"])
        target = json.loads(server.ask("resources/read", {"uri": "gradb://target"})["result"]["contents"][0]["text"])
        self.assertEqual(target["type"], "target")


@unittest.skipUnless(PYTHON, "needs mcp from PyPI in build/tools-venv")
class OfficialClient(unittest.TestCase):
    def session(self, mode):
        home = harness.folder_of(self)
        env = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=f"{home}/config", XDG_STATE_HOME=f"{home}/state",
                   LC_ALL="C.UTF-8", HARNESS_HOME=str(home))
        env.pop("PYTHONPATH", None)
        self.addCleanup(harness.end_all_of, home)
        done = subprocess.run([PYTHON, CLIENT, mode, harness.GRADB, "-nx", "--listen", "127.0.0.1:0", "mcp",
                               "--allow-run", "run", "--", harness.CHARLM, "--seed", "7", "--fault", "nan-log"],
                              capture_output=True, text=True, env=env, timeout=2 * harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def check(self, mode, version):
        seen = self.session(mode)
        self.assertEqual(seen["version"], version)
        self.assertLessEqual(len(seen["calls"]), 6)
        self.assertFalse([call for call in seen["calls"] if call["error"]], seen["calls"])
        why = next(call for call in seen["calls"] if call["name"] == "why")
        self.assertEqual(why["record"]["rule"], "log-of-zero")
        self.assertIn("the logarithm of 0 is -Inf", " ".join(why["text"].split()))
        self.assertIn("model.c", why["text"])
        self.assertTrue(why["record"]["node"].endswith("Log-op49"), why["record"]["node"])
        self.assertEqual(seen["graph"]["type"], "graph")
        self.assertEqual(seen["hits"]["hits"][0]["node"], why["record"]["node"])
        self.assertIn("gradb://hits", seen["resources"])
        return seen

    def test_by_a_handshake(self):
        self.check("legacy", "2025-11-25")

    def test_by_the_newest_revision(self):
        seen = self.check("auto", "2026-07-28")
        self.assertGreater(seen["pages"], 1)
        tools = {tool["name"]: tool for tool in seen["tools"]}
        wanted = {"run", "step", "next", "watch", "why", "print", "stats", "hits", "history", "compare", "log",
                  "continue", "break", "info", "inputs", "search", "open"}
        self.assertLessEqual(wanted, set(tools))
        self.assertEqual(tools["run-to"]["inputSchema"]["required"], ["node"])
        self.assertEqual(tools["step"]["inputSchema"]["properties"]["n"]["type"], "integer")
        self.assertIn("graph", tools["info"]["inputSchema"]["properties"]["subject"]["enum"])
        self.assertTrue(tools["why"]["annotations"]["readOnlyHint"])
        self.assertFalse(tools["step"]["annotations"]["readOnlyHint"])


if __name__ == "__main__":
    harness.main()
