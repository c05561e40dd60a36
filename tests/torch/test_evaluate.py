# SPDX-License-Identifier: GPL-3.0-or-later
"""Python code in a stopped PyTorch training: print, call, info locals, and what they leave as it was."""
import json
import re
import signal

import harness
import torches
from editor import Editor
from terminal import Terminal

# Prints a digest of all that the training computes and draws.
TRAIN = """
import hashlib, random
import numpy
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        h = self.fc(x)
        scale = 2.0
        y = torch.relu(h)
        return self.drop(y) * scale

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        z = self.block(x)
        return self.head(z)

def spin():
    while True:
        pass

def train(steps):
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    digest = hashlib.sha256()
    for step in range(steps):
        x = torch.randn(16, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        digest.update(repr((loss.item(), random.random(), numpy.random.rand())).encode())
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    for turn in range(300):
        large = turn + 2 ** 60
    with open("digest", "w") as file:
        file.write(digest.hexdigest())

train(5)
"""
HARMLESS = ("info locals", "info args", "print x", "print x.shape", "print model.head.weight.std()", "print torch.rand(3)",
            "print [torch.rand(1).item() for i in range(3)]", "print random.random() + numpy.random.rand()",
            "print model(x)", "print model.train()", "print (x @ x.T).trace()", "print 1/0 + nothing", "print numpy.ones(3)",
            "call 1 + 1", "call x.mean()", "call [p.shape for p in model.parameters()]")


@torches.both
class Evaluate(torches.Folder):
    def setUp(self):
        super().setUp()
        self.script = self.write("train.py", TRAIN)

    def run_script(self, *commands, **env):
        """What gradb says, and the digest of the training, which must have come to its end."""
        file = self.folder / "digest"
        file.write_text("")
        done = self.gradb([self.python, self.script], "set on-error continue", *commands, "continue", **env)
        self.assertRegex(file.read_text(), "^[0-9a-f]{64}$", done.stdout + done.stderr)
        return done, file.read_text()

    def test_the_run_stays_as_it_was(self):
        _, bare = self.run_script()
        done, digest = self.run_script(
            "set evaluate-code on", "step", *HARMLESS, "run-to model/block/relu", *HARMLESS, "print h * scale", "next",
            *HARMLESS, "run-to backward/model/head/linear", *HARMLESS, "step", *HARMLESS, "echo GRAPH", "info nodes")
        self.assertEqual(bare, digest)
        self.assertNotIn("trace", done.stdout.split("GRAPH")[1])  # no node of what was evaluated
        self.assertNotIn("Changed by hand", done.stdout)

    def run_script_failing(self, *commands):
        done = self.gradb([self.python, self.script], "set on-error continue", *commands, "continue")
        self.assertIn("The training failed", done.stdout, done.stderr)
        return done, ""

    def evaluated(self, *commands):
        done, _ = self.run_script("set evaluate-code on", *commands, options=("--json",))
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return [record for record in records if record["type"] in ("evaluation", "error")]

    def test_values(self):
        found = self.evaluated("step", "print x.shape", "print model.head.weight * 2", "print [step, 'a']",
                               "print nothing.at.all()", "print torch.arange(5)", "call torch.zeros(2, 3, dtype=torch.bool)",
                               "print 'a' * 100000", "call print('b' * 200000)", "print nothing", "print x[0, :2] + 1")
        self.assertEqual(found[0]["text"], "torch.Size([16, 4])")
        self.assertEqual(found[0]["frame"]["function"], "train")
        self.assertEqual((found[1]["shape"], found[1]["dtype"], found[1]["history"]), ([1, 8], "float32", 1))
        self.assertEqual(found[1]["stats"]["count"], 8)
        self.assertEqual(found[2]["text"], "[0, 'a']")
        self.assertIn("NameError: name 'nothing' is not defined", found[3]["error"]
                      if isinstance(found[3].get("error"), str) else json.dumps(found[3]))
        tensors = [record for record in found if record.get("kind") == "tensor"]
        self.assertEqual(tensors[1]["values"], [0, 1, 2, 3, 4])
        self.assertEqual((tensors[2]["dtype"], tensors[2]["shape"]), ("bool", [2, 3]))
        self.assertEqual(tensors[3]["shape"], [2])
        long = next(record for record in found if record.get("length"))
        self.assertEqual((long["length"], len(long["text"])), (100002, 16384))
        output = next(record for record in found if record.get("dropped"))
        self.assertEqual(len(output["output"]) + output["dropped"], 200001)

    def test_frames_and_variables(self):
        done, _ = self.run_script("set evaluate-code on", "step", "run-to model/block/relu",
                          "info locals", "info args", "up", "info locals", "print z", "down", "print h.shape", "up 2",
                          "call step + 40", "up", "up")
        out = done.stdout
        self.assertRegex(out, r"Variables in forward \(train.py:15\), step 2:\n")
        self.assertRegex(out, r"scale +float +2\.0")
        self.assertRegex(out, r"h +Tensor +float32 \(16, 8\) from .*grad_fn AddmmBackward0")
        self.assertRegex(out, r"Arguments in forward.*\nName.*\nself +Block .*\nx +Tensor")
        self.assertIn("Variables in forward (train.py:24)", out)
        self.assertIn("torch.Size([16, 8])", out)
        self.assertIn("\n41\n", out)
        self.assertIn("no variable of that name in forward (train.py:24)", done.stderr)
        self.assertIn("this is the outermost frame", done.stderr)

    def test_what_call_changes(self):
        done, _ = self.run_script("set evaluate-code on", "step", "call opt.step()",
                          "run-to model/block/relu", "call scale = 3.0", "print scale", "call later = 7", "print later + 1",
                          "call h.zero_()", "call model", "up 2", "call model.head.weight.data.mul_(2)",
                          "call opt.param_groups[0]['momentum'] = 0.5", "info events", "step", "call step")
        out = done.stdout
        self.assertIn("\n3.0\n8\n", out)
        self.assertIn("Changed by hand: h", out)
        self.assertRegex(out, r"Changed by hand: .*block.fc.weight")
        self.assertIn("Changed by hand: model.head.weight", out)
        self.assertIn("Changed by hand: momentum of SGD[0]", out)
        self.assertRegex(out, r"   2  set +call|   2  set +h.zero_\(\) changed")
        self.assertIn("Stopped at the end of step 2.", out)  # the step of `call` was none of the training's
        self.assertIn("\n1\n", out)

    SUM = ("call str([p.double().sum().item() for p in model.parameters()]"
           " + [s['momentum_buffer'].sum().item() for s in opt.state.values()])")

    def test_changes_and_undo(self):
        _, bare = self.run_script()
        undone = ("set model/head/weight[0, 1:3] = nan", "set model/block/fc/bias = 0", "set model/head/weight.grad[0] = 7",
                  "set optimizer/SGD/model/head/bias.momentum_buffer = 1", "set lr = lr / 3", "skip-update", "zero-grad",
                  "set requires_grad model/head/bias off")
        done, digest = self.run_script("set evaluate-code on", "step", self.SUM, *undone, *["undo"] * len(undone), self.SUM,
                                       "undo", "info target", "info session")
        self.assertEqual(digest, bare, done.stdout + done.stderr)
        self.assertEqual(len(set(line for line in done.stdout.splitlines() if line.startswith("'["))), 1)
        self.assertIn("error: nothing was changed by hand", done.stderr)
        self.assertRegex(done.stdout, r"changed by hand +16 changes, the first in step 1\n")
        self.assertIn("\nThe run was changed by hand: 16 changes, the first in step 1 (info events).\n", done.stdout)
        self.assertTrue(done.stdout.rstrip().endswith("The run was changed by hand: 16 changes, the first in step 1 (info "
                                                      "events)."), done.stdout)

    def test_changes_take_effect(self):
        done, _ = self.run_script(
            "set evaluate-code on", "step", "set model/head/bias[0] = 0.5", "print model/head/bias", "info events",
            "set requires_grad model/head/bias off", "skip-update", self.SUM, "step", self.SUM, "step", "print model/head/bias",
            "undo", "undo", "set model/head/weight[9] = 1", "set model/head/weight = a lot", "set model/head/weight = 1e99",
            "set model/nothing = 1", "set model/block/relu = 1", "skip-update Adam", "set requires_grad model/head/bias maybe",
            "set lr[Adam] = 1", "set lr[3] = 1")
        self.assertEqual(len(set(line for line in done.stdout.splitlines() if line.startswith("'["))), 1)
        self.assertEqual(done.stdout.count("\n[0.5]\n"), 2)
        self.assertRegex(done.stdout, r"   1  set +model/head/bias\[0\] = 0\.5 \(was -?0\.\d+\)")
        for line in ("the step of SGD that updates nothing is over",
                     "index 9 is out of bounds for dimension 0 with size 1: the shape is (1, 8)", "'a lot' is not a number",
                     "1e99 is outside of what float32 holds", "there is no node 'model/nothing'",
                     "model/block/relu is computed in each step", "no optimizer 'Adam': the optimizers are SGD",
                     "set requires_grad: specify a parameter and on or off",
                     "set lr: SGD has no group 3: its groups are 0 to 0"):
            self.assertIn("error: " + line, done.stderr)

    def test_dprintf_takes_expressions(self):
        done, digest = self.run_script(
            "set evaluate-code on", "step", "dprintf model/block/relu,\"std %.3f %s %s %d\\n\",h.std(),type(self).__name__,"
            "tuple(h.shape),len(h)", "dprintf model/block/relu,(h[0, :2] * 0).abs(),'x' * 3,nothing(1)",
            "dprintf optimizer/SGD/model/head/bias,\"lr %g\\n\",opt.param_groups[0]['lr']", "step", "delete 1", "delete 2",
            "set evaluate-code off", "step")
        self.assertRegex(done.stdout, r"\nstd 0\.\d{3} Block \(16, 8\) 16\n")
        self.assertIn("\nTensor(shape=[2], dtype=Float32, value=[ 0.00000000e+00  0.00000000e+00])\nxxx\n"
                      "<nothing(1): NameError: name 'nothing' is not defined>\n", done.stdout)
        self.assertIn("\nlr 0.1\n", done.stdout)
        self.assertIn("lr <opt.param_groups[0]['lr']: Python code is not evaluated: `set evaluate-code` is off>", done.stdout)
        self.assertEqual(digest, self.run_script()[1])

    def test_dprintf_at_a_line(self):
        """A name is a variable of the frame; what raises, what is changed and what could move the cursor is said."""
        line = TRAIN.split("\n").index("        opt.zero_grad()") + 1
        hot = TRAIN.split("\n").index("        large = turn + 2 ** 60") + 1
        done, digest = self.run_script(
            "set evaluate-code on", "step",
            'dprintf train.py:%d,"loss %%.17g %%.17g, step %%d, %%s\\n",loss,loss.item(),step,1/0' % line,
            "dprintf train.py:%d,x[0, :2] * 0,nothing,chr(27) + '[2J\\ttab',torch.full_like(x[0, :2], step, dtype=torch.int32)" % line,
            'dprintf train.py:%d,"turn %%d of %%d %%s\\n",turn,turn + 2**60,10**30' % hot, "step 2")
        out = done.stdout
        pairs = [found.split() for found in re.findall(r"(?m)^loss (.*), step", out)]
        self.assertEqual(len(pairs), 4, out)
        self.assertTrue(all(first == second for first, second in (" ".join(pair).split(" ") for pair in pairs)), pairs)
        self.assertEqual(re.findall(r"step (\d), <1/0: ZeroDivisionError: division by zero>", out), list("2345"))
        self.assertIn("\nTensor(shape=[2], dtype=Float32, value=[ 0.00000000e+00  0.00000000e+00])\n"
                      "<nothing: NameError: name 'nothing' is not defined>\n\\x1b[2J\ttab\n"
                      "Tensor(shape=[2], dtype=Int32, value=[1 1])\n", out)
        turns = re.findall(r"(?m)^turn (\d+) of (\d+) 1000000000000000000000000000000$", out)
        self.assertEqual(turns, [(str(turn), str(turn + 2 ** 60)) for turn in range(300)])
        self.assertEqual(digest, self.run_script()[1])
        done, _ = self.run_script("set evaluate-code on", "step", "dprintf train.py:%d,loss.detach().zero_()" % (line + 3),
                                  "step", "info events")
        self.assertRegex(done.stdout, r"   1  set +loss.detach\(\).zero_\(\) changed loss\n")

    def test_an_editor(self):
        """Breakpoints before the launch, what becomes of them, and local variables."""
        text = '"""A\ntext."""\nwide = None' + TRAIN.replace("def train(steps):", "def train(steps):\n"
                "    # large ones\n    text, wide = 'a' * 100000, torch.zeros(1 << 20)")
        lines = text.split("\n")
        script = str(self.write("a train.py", text))
        line, empty = lines.index("        y = torch.relu(h)") + 1, lines.index("    # large ones") + 1
        names = ("GRADB_LIBRARY", "OMP_NUM_THREADS")
        editor = Editor(self, env={name: value for name, value in torches.environment().items() if name in names})

        def set_lines(*numbers):
            said = editor.ask("setBreakpoints", source={"path": script}, breakpoints=[{"line": at} for at in numbers])
            return said["breakpoints"]

        set_lines(line - 1)
        found = set_lines(line, empty, 2, 100000)
        self.assertEqual([(at["verified"], at["line"]) for at in found],
                         [(True, line), (True, empty + 1), (True, 2), (False, 100000)])
        self.assertTrue(editor.launch(program=script, python=self.python, args=[])["success"])
        changed = editor.event("breakpoint")  # a line in a text looks like code
        self.assertEqual((changed["reason"], changed["breakpoint"]),
                         ("changed", {"id": found[2]["id"], "verified": True, "line": 3}))
        for at in (found[1], found[0]):
            stop = editor.event("stopped")
            self.assertEqual((stop["reason"], stop["hitBreakpointIds"]), ("breakpoint", [at["id"]]))
            if at is found[1]:
                editor.ask("continue", threadId=1)
        frames = editor.ask("stackTrace", threadId=1)["stackFrames"]
        self.assertEqual((frames[0]["source"]["path"], frames[0]["line"]), (script, line))

        def local_variables(number):
            scopes = {scope["name"]: scope for scope in editor.ask("scopes", frameId=frames[number]["id"])["scopes"]}
            said = editor.ask("variables", variablesReference=scopes["Locals"]["variablesReference"])["variables"]
            return {one["name"]: one for one in said}

        inner = local_variables(0)
        self.assertEqual((inner["scale"]["value"], inner["scale"]["variablesReference"]), ("2.0", 0))
        self.assertIn("float32 (16, 8) from ", inner["h"]["value"])
        inside = {one["name"]: one["value"] for one in editor.ask(
            "variables", variablesReference=inner["h"]["variablesReference"])["variables"]}
        self.assertEqual((inside["shape"], inside["dtype"], inside["count"]), ("[16,8]", "float32", "128"))
        self.assertRegex(inside["elements"], r"\[\[.*\d")
        number = next(i for i, frame in enumerate(frames) if frame["name"] == "train")
        outer = local_variables(number)
        self.assertLess(len(outer["text"]["value"]), 200)
        inside = {one["name"]: one["value"] for one in editor.ask(
            "variables", variablesReference=outer["wide"]["variablesReference"])["variables"]}
        self.assertEqual((inside["shape"], inside["zero"]), ("[1048576]", "1048576"))
        self.assertIn("too many values", inside["elements"])
        self.assertIn("is not evaluated", editor.refused("evaluate", expression="h.sum()\nkill", context="hover"))
        editor.ask("evaluate", expression="set evaluate-code on", context="repl")
        for number, expression, value in ((0, "h[0, :3] * 0", "[0.0.0.]"), (number, "wide[:2]", "[0.0.]")):
            said = editor.ask("evaluate", expression=expression, context="hover", frameId=frames[number]["id"])["result"]
            self.assertIn(value, said.replace("-", "").replace(" ", ""))
        editor.ask("setBreakpoints", source={"path": script}, breakpoints=[])
        editor.ask("continue", threadId=1)
        editor.event("terminated")
        editor.ask("disconnect")

    def test_interact(self):
        done, _ = self.run_script(
            "set evaluate-code on", "step", "interact", "y = 5", "y + 1", "_ * 2", "for i in range(2):",
            "    print('line', i)", "", "1 +", "nothing", "def f(a):", "    return a + y", "", "f(1)", "steps = 9", "end",
            "call y", "call steps", "step", "call y")
        self.assertRegex(done.stdout, r"\n6\n12\nline 0\nline 1\n6\n5\n9\n")
        self.assertIn("error: SyntaxError: ", done.stderr)
        self.assertEqual(done.stderr.count("error: NameError: name 'nothing' is not defined"), 1)
        self.assertEqual(done.stderr.count("error: NameError: name 'y' is not defined"), 1)  # after the step

    def terminal(self, *options):
        env = {name: value for name, value in torches.environment().items() if name != "HOME" and name[:4] != "XDG_"}
        return Terminal(options=options, run=[self.python, self.script], env=env)

    def test_the_question(self):
        """At a prompt it is asked, until the answer is yes."""
        with self.terminal() as t:
            t.expect(r"Stopped before the first step\.")
            question = r"^Run the Python code that you type in the training process\? \(y or n\)"
            refused = r"^error: nothing was evaluated \(see `help set evaluate-code`\)"
            for number, answer in enumerate(("n\r", "\x04", "y\r"), 1):
                t.send("call 6 * 7\r")
                t.wait("the question again", lambda n=number: len(re.findall("(?m)" + question, t.text())) == n)
                t.send(answer)
                if number < 3:
                    t.wait("a refusal", lambda n=number: len(re.findall("(?m)" + refused, t.text())) == n)
            t.expect(r"^42$")
            t.command("call 6 * 8", r"^48$")
            self.assertEqual(len(re.findall("(?m)" + question, t.text())), 3, t.text())
            t.command("set evaluate-code off", r"")
            t.command("call 6 * 9", r"^error: Python code is not evaluated: `set evaluate-code` is off$")
            t.command("quit", r"Quit anyway")
            t.send("y\r")
            t.wait_exit()

    def test_interact_in_the_panes(self):
        """80x24: a key of a pane is gradb's meanwhile, C-d ends the prompt of Python."""
        last = r"[^\n]*\n gradb "  # the rest of the console's last line; pyte leaves some of what was there before
        with self.terminal("--tui") as t:
            t.expect(r"^\(gradb\)" + last)
            t.command("interact", r"Run the Python code")
            t.send("y")
            t.expect(r"^>>>" + last)
            t.command("seven = 7", r"^>>> seven = 7\b[^\n]*\n>>>" + last)
            t.send("\x18o")
            t.expect(r": prompt$")
            t.send("jj\rj")
            t.expect(r"▾ head")
            t.send("<")  # a command
            t.expect(r"^\(gradb\) inputs model")
            t.send(":")
            t.command("seven * 6", r"^42\b[^\n]*\n>>>" + last)
            self.assertNotIn("Error", t.text())
            t.send("\x04")
            t.expect(r"^\(gradb\)" + last)
            t.command("echo still here", r"^still here\b")
            t.quit()

    def test_where_an_exception_was_raised(self):
        done, _ = self.run_script_failing(
            "set evaluate-code on", "step", "call model.head = None", "step", "info locals", "print z.shape", "call 1 + 1")
        self.assertRegex(done.stdout, r"Variables in forward \(train.py:25\), step [12]:")
        self.assertIn("torch.Size([16, 8])\n2\n", done.stdout)

    def test_ctrl_c(self):
        """It interrupts what hangs, and the training is unharmed."""
        with harness.Gradb("-nx", "--json", command=["run", "--", self.python, self.script], cwd=self.folder,
                           env=torches.environment()) as gradb:
            gradb.expect('"type":"run"')
            for line in ("set evaluate-code on", "step"):
                gradb.send(line)
            gradb.expect('"type":"stopped".*"step":1,')
            gradb.send("call (open('hangs', 'w').close(), spin())")
            harness.wait_for("the code to hang", lambda: (self.folder / "hangs").exists())
            gradb.process.send_signal(signal.SIGINT)
            gradb.expect("KeyboardInterrupt")
            gradb.send("print x.shape")
            gradb.expect(r"torch.Size\(\[16, 4\]\)")
            gradb.send("continue")
            gradb.expect('"type":"finished"')
        self.assertRegex((self.folder / "digest").read_text(), "^[0-9a-f]{64}$")

    def test_the_agent_refuses(self):
        """By itself, for a debugger that does not: it knows the setting, and that others can reach the debugger."""
        asks = """
def ask(step):
    import gradb.torch
    from gradb.torch import commands
    try:
        said = commands.run(gradb.torch._agent, "evaluate", '{"mode": "print", "code": "step"}', None)
    except commands.CommandError as error:
        said = str(error)
    with open("asked", "a") as file:
        file.write("%d %s\\n" % (step, said))

train(5)"""
        asking = TRAIN.replace("\ntrain(5)", asks).replace("        digest.update", "        ask(step)\n        digest.update", 1)
        self.script = self.write("asking.py", asking)
        done, _ = self.run_script("step", "set evaluate-code off", "step", "set evaluate-code on", "step", "set evaluate-code off",
                                  "agent evaluate {}", "agent evaluate-refuse off", "agent change {}")
        said = (self.folder / "asked").read_text().splitlines()
        refused = "the debugger has said `set evaluate-code off`"
        self.assertEqual([line.endswith(refused) for line in said], [True, False, True, True, True], said)
        self.assertIn('"text": "1"', said[1])
        for line in ("use `print EXPR` or `call EXPR`", "use `set evaluate-code on` or `set evaluate-code off`",
                     "use `set NODE = VALUE` or `help set`"):
            self.assertIn("error: " + line, done.stderr)
        (self.folder / "asked").unlink()
        self.run_script("set evaluate-code on", "step 2", listen="0.0.0.0:0")
        said = (self.folder / "asked").read_text().splitlines()
        self.assertTrue(len(said) == 5 and all(line.endswith(refused) for line in said), said)

    def test_refusals(self):
        done, _ = self.run_script("step", "print x.shape", "print x",
                          "call x", "set evaluate-code off", "call x", "info locals")
        self.assertIn("error: Python code is not evaluated here: allow it with `set evaluate-code on`", done.stderr)
        self.assertIn("there is no node 'x'; Python code is not evaluated here", done.stderr)
        self.assertIn("error: Python code is not evaluated: `set evaluate-code` is off", done.stderr)
        self.assertIn("Variables in train", done.stdout)
        done, _ = self.run_script("set evaluate-code on", "step", "print x.shape", GRADB_EVALUATE="off")
        self.assertIn("error: the program was started with GRADB_EVALUATE=off: it evaluates nothing", done.stderr)
        done, _ = self.run_script(
            "set evaluate-code on", "step", "print undefined(1", "print x = 3", "call 1/0", "call raise SystemExit(3)", "call spin(1)",
                          "call import this_is_no_module", "step")
        for line in ("SyntaxError", "ZeroDivisionError: division by zero",
                     "SystemExit: 3", "TypeError: spin() takes 0 positional arguments but 1 was given",
                     "ModuleNotFoundError: No module named 'this_is_no_module'"):
            self.assertIn("error: " + line, done.stderr)
        self.assertIn("Stopped at the end of step 2.", done.stdout)


if __name__ == "__main__":
    harness.main()
