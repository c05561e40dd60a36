# SPDX-License-Identifier: GPL-3.0-or-later
"""`gradb dap`: a client of the Debug Adapter Protocol, as an editor is."""
import os
import subprocess
import unittest

import harness
from editor import ARGUMENTS, Editor

MODEL = str((harness.SOURCE / "examples" / "charlm" / "model.c").resolve())
with open(MODEL, encoding="utf-8") as source:
    LOG_LINE = next(number for number, line in enumerate(source, 1) if "m->logp = node_log(" in line)


class Session(unittest.TestCase):
    def test_find_the_fault(self):
        """As an editor does it: breakpoints first, then the launch; stacks, scopes, variables, the console."""
        editor = Editor(self)
        self.assertTrue(editor.capabilities["supportsFunctionBreakpoints"])
        lines = editor.ask("setBreakpoints", source={"path": MODEL}, breakpoints=[{"line": LOG_LINE}])["breakpoints"]
        self.assertEqual(lines[0]["line"], LOG_LINE)
        self.assertFalse(lines[0]["verified"])  # nothing runs yet
        found = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "nosuchnode"}])["breakpoints"]
        self.assertFalse(found[0]["verified"])
        editor.ask("setExceptionBreakpoints", filters=["nonfinite"])
        self.assertTrue(editor.launch(fault=("--fault", "nan-log"))["success"])
        stop = editor.event("stopped")
        self.assertEqual((stop["reason"], stop["threadId"]), ("breakpoint", 1))
        self.assertEqual(editor.ask("threads")["threads"][0]["id"], 1)
        frames = editor.ask("stackTrace", threadId=1)["stackFrames"]
        self.assertEqual((frames[0]["source"]["path"], frames[0]["line"]), (MODEL, LOG_LINE))
        scopes = {s["name"]: s["variablesReference"] for s in editor.ask("scopes", frameId=frames[0]["id"])["scopes"]}
        tensors = editor.ask("variables", variablesReference=scopes["Tensors"])["variables"]
        self.assertEqual(tensors[0]["name"], "output 0")
        self.assertTrue(tensors[1]["name"].startswith("input 0: "), tensors)
        self.assertIn("min=", tensors[0]["value"])
        inside = editor.ask("variables", variablesReference=tensors[0]["variablesReference"])["variables"]
        self.assertIn("elements", [v["name"] for v in inside])
        self.assertEqual(next(v["value"] for v in inside if v["name"] == "neg_inf"), "0")
        self.assertIn("Log-op", editor.ask("evaluate", expression="node-info", context="repl")["result"])
        self.assertEqual(editor.ask("evaluate", expression="1+1", context="hover")["result"].split()[-1], "2")
        editor.refused("evaluate", expression="print nosuchnode", context="repl")
        editor.ask("setBreakpoints", source={"path": MODEL}, breakpoints=[])
        editor.ask("continue", threadId=1)
        stop = editor.event("stopped")
        self.assertEqual(stop["reason"], "data breakpoint")
        self.assertIn("Log-op", stop["description"])
        self.assertIn("logarithm of 0", " ".join(editor.ask("evaluate", expression="why", context="repl")["result"].split()))
        editor.ask("disconnect")
        self.assertEqual(editor.process.wait(timeout=harness.DEADLINE), 0)

    def test_moving(self):
        editor = Editor(self)
        self.assertTrue(editor.launch(stop=True)["success"])
        self.assertEqual(editor.event("stopped")["reason"], "entry")
        editor.ask("stepIn", threadId=1)
        self.assertEqual(editor.event("stopped")["description"], "step, step 1")
        metrics = editor.ask("scopes", frameId=editor.ask("stackTrace", threadId=1)["stackFrames"][0]["id"])["scopes"]
        values = editor.ask("variables", variablesReference=metrics[-1]["variablesReference"])["variables"]
        self.assertIn("loss", [v["name"] for v in values])
        editor.ask("next", threadId=1)
        self.assertIn("node, step 2", editor.event("stopped")["description"])
        editor.refused("variables", variablesReference=metrics[-1]["variablesReference"])
        editor.ask("stepOut", threadId=1)
        editor.event("stopped")
        found = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "type:GeLU", "condition": "step > 3"},
                                                                  {"name": "watch TO on all"}])["breakpoints"]
        self.assertTrue(found[1]["verified"], found)
        editor.ask("setFunctionBreakpoints", breakpoints=[])
        editor.ask("continue", threadId=1)
        self.assertEqual(editor.event("exited")["exitCode"], 0)
        editor.event("terminated")
        self.assertTrue([e for e in editor.events if e.get("event") == "output" and "loss" in e["body"]["output"]])
        editor.ask("disconnect")
        self.assertEqual(editor.process.wait(timeout=harness.DEADLINE), 0)

    def test_pause_and_terminate(self):
        editor = Editor(self)
        self.assertTrue(editor.launch(args=["--seed", "7", *harness.SMALL, "--steps", "100000000"])["success"])
        editor.ask("pause", threadId=1)
        self.assertEqual(editor.event("stopped")["reason"], "pause")
        editor.ask("continue", threadId=1)
        editor.refused("stackTrace", threadId=1)
        editor.ask("terminate")
        editor.event("terminated")
        editor.ask("disconnect")
        self.assertEqual(editor.process.wait(timeout=harness.DEADLINE), 0)

    def test_attach(self):
        editor = Editor(self)
        attached = editor.send("attach", listen="127.0.0.1:0", stopOnEntry=True)
        editor.ask("configurationDone")
        self.assertTrue(editor.response(attached)["success"])
        address = editor.ask("evaluate", expression="help connect", context="repl")["result"]
        port = next(word for word in address.replace("=", " ").replace('"', " ").split() if word.startswith("127.0.0.1:"))
        training = subprocess.Popen([harness.CHARLM, *ARGUMENTS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    env=dict(os.environ, GRADB_ADDRESS=port, HARNESS_HOME=str(editor.home)))
        self.assertEqual(editor.event("stopped")["reason"], "entry")
        editor.ask("disconnect")
        self.assertEqual(training.wait(timeout=harness.DEADLINE), 0)  # it continues without the editor


class Hostile(unittest.TestCase):
    def test_bad_requests(self):
        editor = Editor(self)
        self.assertIn("program", self.launch_of(editor))
        for command, arguments in (("nosuch", {}), ("stackTrace", {"threadId": 99}), ("variables", {"variablesReference": 7}),
                                   ("variables", {"variablesReference": "x"}), ("continue", {}), ("setBreakpoints", {}),
                                   ("evaluate", {"expression": "x" * 70000, "context": "repl"}),
                                   ("evaluate", {"expression": "nosuchcommand", "context": "repl"})):
            self.assertTrue(editor.refused(command, **arguments))
        for bad in (b"nonsense", b"[1]", b"{}", b'{"seq":"x","command":1}', b"[" * 1000, b'"\xff"'):
            editor.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(bad), bad))
            self.assertEqual(editor.event("output")["category"], "important")
        self.assertEqual(editor.ask("threads"), {"threads": []})

    def launch_of(self, editor):
        launched = editor.send("launch")
        editor.ask("configurationDone")
        return editor.response(launched)["message"]

    def test_bad_frames_end_it(self):
        for data in (b"Content-Length: -1\r\n\r\n", b"Content-Length: 99999999999999999999\r\n\r\n", b"Other: 1\r\n\r\n",
                     b"x" * 5000):
            editor = Editor(self, hello=False)
            editor.send_bytes(data)
            self.assertEqual(editor.receive()["event"], "output")
            self.assertEqual(editor.process.wait(timeout=harness.DEADLINE), 0)


if __name__ == "__main__":
    harness.main()
