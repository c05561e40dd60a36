# SPDX-License-Identifier: GPL-3.0-or-later
"""--json driven through a pipe: the start event, requests with ids, and a command in every answer."""
import json
import unittest

import harness

CHARLM = ["run", "--", str(harness.CHARLM), "--seed", "7", *harness.SMALL, "--batch", "4", "--steps", "60"]


def exchange(*lines, options=(), mode=CHARLM):
    """The records that gradb prints for these lines of input."""
    done = harness.run_gradb("-nx", "--json", *options, "--listen", "127.0.0.1:0", *mode,
                             input="".join(line + "\n" for line in lines))
    return [record for record in map(json.loads, done.stdout.splitlines()) if record["type"] != "log"]


class Start(unittest.TestCase):
    def test_first_line_says_what_runs(self):
        for mode, name in ((CHARLM, "run"), (["listen"], "listen"), ([], "prompt")):
            start = exchange(mode=mode)[0]
            self.assertEqual((start["type"], start["mode"], start["protocol"]), ("start", name, 1))
            self.assertRegex(start["version"], r"^\d+\.\d+\.\d+$")
            self.assertGreater(start["pid"], 1)

    def test_batch_has_it_too(self):
        start = exchange(options=["--batch", "-ex", "info graph"])[0]
        self.assertEqual((start["type"], start["mode"]), ("start", "run"))


class Requests(unittest.TestCase):
    def test_the_answer_has_the_id_and_the_command(self):
        records = exchange('{"id": 7, "command": "step"}', '  {"command": "info graph", "id": "a"}',
                           '{"id":12345678901234567890,"command":"foo x"}', '{"id": 9, "command": "info nosuch"}', "step 2")
        answers = [(r.get("id"), r["type"], r["command"]) for r in records if "command" in r]
        self.assertEqual(answers, [(None, "run", "run"), (7, "run", "step"), ("a", "graph", "info graph"),
                                   (12345678901234567890, "error", "foo"), (9, "error", "info"), (None, "run", "step")])
        self.assertEqual([r["step"] for r in records if r["type"] == "run"], [0, 1, 3])

    def test_events_have_neither(self):
        records = exchange('{"id": 7, "command": "step"}')
        stop = [r for r in records if r["type"] == "stopped"][-1]
        self.assertNotIn("id", stop)
        self.assertNotIn("command", stop)

    def test_one_answer_for_lines_that_run_several_commands_or_none(self):
        records = exchange('{"id": 1, "command": "define two"}', "step", "step", "end",
                           '{"id": 2, "command": "two"}', '{"id": 3, "command": ""}', '{"id": 4, "command": "# nothing"}')
        with_id = [(r["id"], r["type"]) for r in records if "id" in r]
        self.assertEqual(with_id, [(1, "ok"), (2, "ok"), (3, "ok"), (4, "ok")])
        self.assertEqual([r["step"] for r in records if r["type"] == "run" and r["command"] == "step"], [1, 2])

    def test_bad_requests_get_one_error_each(self):
        deep = '{"id":1,"command":' + "[" * 1000
        records = exchange("{bad", '{"id": 5}', '{"id": [1], "command": "step"}', '{"id": 6, "command": 3}', deep,
                           '{"id": 7, "command": "step\\nstep"}', '{"id": 8, "command": "step\\u0000"}', mode=[])
        errors = records[1:]
        self.assertEqual([r["type"] for r in errors], ["error"] * 7, errors)
        self.assertEqual([r.get("id") for r in errors], [None, 5, None, 6, None, 7, None])
        self.assertTrue(all(r["command"] == "" for r in errors))

    def test_an_empty_line_repeats_nothing(self):
        records = exchange("step", "", "   ", '{"id": 1, "command": ""}', "step")
        self.assertEqual([r["step"] for r in records if r["type"] == "run"], [0, 1, 2])

    def test_braces_mean_nothing_without_json(self):
        done = harness.run_gradb("-nx", "-q", input='{"id": 1, "command": "echo hi"}\n')
        self.assertIn("error: ", done.stderr)


if __name__ == "__main__":
    harness.main()
