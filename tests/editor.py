# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of the Debug Adapter Protocol, as an editor is, for the tests of `gradb dap`."""
import json
import os
import subprocess
import threading

import harness

ARGUMENTS = ["--seed", "7", *harness.SMALL, "--batch", "4", "--steps", "60"]


class Editor:
    def __init__(self, test, *args, hello=True, env=None):
        self.home = harness.folder_of(test)
        env = dict(os.environ, HOME=str(self.home), XDG_CONFIG_HOME=f"{self.home}/config", HARNESS_HOME=str(self.home),
                   XDG_STATE_HOME=f"{self.home}/state", LC_ALL="C.UTF-8", TERM="dumb", **(env or {}))
        self.process = subprocess.Popen([str(harness.GRADB), "-nx", "--listen", "127.0.0.1:0", *args, "dap"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        test.addCleanup(self.close)
        self.timer = threading.Timer(harness.DEADLINE, self.process.kill)
        self.timer.start()
        self.seq = 0
        self.events = []
        if hello:
            self.capabilities = self.ask("initialize", adapterID="gradb")
            self.event("initialized")

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        harness.end_all_of(self.home)

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, command, **arguments):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.seq

    def receive(self):
        """The next message; nothing else may be on stdout."""
        length = None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"gradb dap ended: {self.process.wait()}")
            if line == b"\r\n":
                return json.loads(self.process.stdout.read(length))
            length = int(line.removeprefix(b"Content-Length: "))

    def response(self, seq):
        while True:
            message = self.receive()
            if message["type"] == "response" and message["request_seq"] == seq:
                return message
            self.events.append(message)

    def ask(self, command, **arguments):
        answer = self.response(self.send(command, **arguments))
        assert answer["success"], answer
        return answer.get("body", {})

    def refused(self, command, **arguments):
        answer = self.response(self.send(command, **arguments))
        assert not answer["success"], answer
        return answer["message"]

    def event(self, name):
        while True:
            for i, message in enumerate(self.events):
                if message.get("event") == name:
                    return self.events.pop(i).get("body", {})
            self.events.append(self.receive())

    def launch(self, *before, stop=False, fault=(), python=None, program=None, args=None):
        launched = self.send("launch", program=program or str(harness.CHARLM),
                             args=args if args is not None else [*ARGUMENTS, *fault],
                             stopOnEntry=stop, **({"python": python} if python else {}))
        for command, arguments in before:
            self.ask(command, **arguments)
        self.ask("configurationDone")
        return self.response(launched)
