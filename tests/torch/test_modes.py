# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch beyond eager operators: compiled and scripted code, checkpoints, transforms, other threads, CUDA graphs. A
training under the agent computes the same there, bit for bit, and gradb says what it cannot see."""
import re
import subprocess

import harness
import programs
import torches

# `run(agent_is_on, ...)` trains a model under one of the modes; `numbers(...)` are its results.
COMPILED = """
import torch._dynamo
from torch._dynamo.utils import counters

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(4, 8), nn.Linear(8, 1), nn.Dropout(0.5)
    def forward(self, x):
        return self.b(self.drop(torch.tanh(self.a(x))))

def loss_of(out):
    return out.pow(2).mean()

def numbers(kind, seen):
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(3)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    if seen:
        agent.discover(optimizer)
        agent.steps.use(optimizer)  # what was compiled before may keep the last one
    def compiled(function):
        return torch.compile(function, backend="aot_eager", fullgraph=kind in ("module", "inplace", "function"))
    def train(x):
        optimizer.zero_grad()
        loss = (lost if kind == "function" else loss_of)(model(x))
        loss.backward()
        step()
        return loss
    model, lost, step = net, loss_of, optimizer.step
    if kind == "module":
        model = compiled(net)
    elif kind == "inplace":
        net.compile(backend="aot_eager", fullgraph=True)
    elif kind == "function":
        lost = compiled(loss_of)
    elif kind == "optimizer":
        step = compiled(lambda: optimizer.step())
    elif kind == "all":
        train = compiled(train)
    losses = []
    for turn in range(4):
        if seen:
            agent.set_watching(turn != 2)  # in the third, nothing is asked
        losses.append(train(torch.ones(2, 4)).item())
    return losses, [tuple(counters["stats"].items()), sum(counters["graph_break"].values())]

agent.set_watching(False)
agent.dead = True
bare = {kind: numbers(kind, False) for kind in KINDS}
agent.dead = False
equal, steps = {}, {}
for kind in KINDS:
    before = told.steps
    equal[kind] = [one == other for one, other in zip(numbers(kind, True), bare[kind])]
    steps[kind] = told.steps - before
finish(equal=equal, steps=steps)
"""

MODES = """
import threading
from torch.utils.checkpoint import checkpoint
try:
    from torch.func import grad, jacrev, vmap
except ImportError:
    from functorch import grad, jacrev, vmap

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.3)
    def forward(self, x):
        return self.drop(torch.relu(self.fc(x)))

class Net(nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.block, self.out, self.how = Block(), nn.Linear(4, 1), how
    def forward(self, x):
        return self.out(checkpoint(self.block, x, **self.how))

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 + 0 * ctx.saved_tensors[0]

def trained(make):
    torch.manual_seed(2)
    net = make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.ones(2, 4, requires_grad=True)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).pow(2).sum().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in net.parameters()]

def transformed():
    def f(w, x):
        return (w * x).sin().sum()
    w = torch.ones(3)
    return [grad(f)(w, torch.arange(3.0)), vmap(lambda row: f(w, row))(torch.ones(4, 3)),
            jacrev(lambda q: q.sin())(w)]

def custom():
    x = torch.ones(3, requires_grad=True)
    y = Twice.apply(x).pow(3).sum()
    first, = torch.autograd.grad(y, x, create_graph=True)
    first.pow(2).sum().backward(retain_graph=True)
    y.backward()
    with torch.inference_mode():
        z = Twice.apply(torch.ones(2)) + 1
    return [first.detach(), x.grad, z.clone()]

def threaded():
    made = []
    def other():
        net = nn.Linear(3, 1)
        with torch.no_grad():
            net.weight.fill_(0.5)
            net.bias.fill_(1)
        net(torch.ones(2, 3)).sum().backward()
        made.append(net.weight.grad)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return made

def raises(register):
    net = Block()
    handle = register(net.fc)
    try:
        net(torch.ones(2, 4)).sum().backward()
    except ZeroDivisionError:
        return True
    finally:
        handle.remove()
    return False

def fail(*args):
    return 1 / 0

kinds = {
    "checkpoint": lambda: trained(lambda: Net(use_reentrant=False)),
    "reentrant checkpoint": lambda: trained(lambda: Net(use_reentrant=True)),
    "script": lambda: trained(lambda: torch.jit.script(Block())),
    "trace": lambda: trained(lambda: torch.jit.trace(Block().eval(), torch.ones(2, 4), check_trace=False)),
    "functions": transformed, "custom": custom, "thread": threaded}
equal = {}
for name, kind in kinds.items():
    agent.dead = True
    agent.set_watching(False)
    bare = kind()
    agent.dead = False
    agent.set_watching(True)
    seen = kind()
    equal[name] = len(bare) == len(seen) and all(torch.equal(x, y) for x, y in zip(bare, seen))
raised = [raises(lambda fc: fc.register_forward_hook(fail)), raises(lambda fc: fc.weight.register_hook(fail))]

def survives(call):
    try:
        call()
    except (IndexError, RuntimeError):
        return not agent.dead
    return False

table, here = torch.ones(3, 4), {"device": "cpu"}  # a bad index on a device ends that
survived = [survives(lambda: torch.gather(table, 5, torch.zeros(3, 4, dtype=torch.long))),
            survives(lambda: vmap(lambda row: nn.functional.embedding(row, torch.ones(3, 4, **here)))(
                torch.tensor([[1, 9]], **here)))]
if torch.__version__ >= (2, 5):  # before, it has no such thing, or raises by itself
    x = torch.ones(3, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge((x * 2).sum())
    made, = torch.autograd.grad([edge], [x], grad_outputs=[torch.ones(())])
    survived.append(not agent.dead and made.tolist() == [2, 2, 2])
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    net(table).sum().backward()
    optimizer.step()
    for parameter in net.parameters():
        parameter.grad.data.zero_()  # which leaves no trace
agent.set_watching(False)
finish(equal=equal, raised=raised, survived=survived, added_up=agent.clearing.found() is not None, left=torch._C._len_torch_function_stack(), path=agent.modules.path(),
       inside=agent.in_backward)
"""

# Fakes of a recording device: what they are asked is what counts.
RECORDED = """
class Recording:
    on = False
    def capture_begin(self):
        Recording.on = True
    def capture_end(self):
        Recording.on = False
torch.cuda.CUDAGraph = Recording
torch.cuda.is_initialized = lambda: True
torch.cuda.is_current_stream_capturing = lambda: Recording.on
agent.regions.remove()
agent.regions.install()
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
agent.discover(optimizer)
def step():
    optimizer.zero_grad()
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
step()
agent.reporter.flush()
asked = []
class Library(type(told)):  # from now on every call counts
    def __getattribute__(self, name):
        if name.startswith("gradb_") and Recording.on:
            asked.append(name)
        return super().__getattribute__(name)
told.__class__ = Library
for how in range(2):
    graph = Recording()
    if how == 0:
        graph.capture_begin()
    else:
        Recording.on = True  # by a way that nobody sees, while nobody looks
        agent.set_watching(False)
        agent.words.armed = 0
    step()
    graph.capture_end()
agent.set_watching(True)
step()
finish(asked=asked, steps=told.steps)
"""

# What the compiler does to PyTorch's optimizers up to 2.2.
UNHOOKED = """
def take_hooks(model):
    torch.optim.SGD.step = torch.optim.SGD.step.__wrapped__
    torch.optim.SGD.step.hooked = True
    return model
torch.compile = take_hooks
agent.regions.remove()
agent.regions.install()
net = nn.Linear(2, 1)
def loss_of(step):
    return net(torch.ones(3, 2)).sum()
train(net, loss_of)
bare = torch.optim.SGD.step.__wrapped__
torch.compile(net)
train(net, loss_of, 3)
agent.optimizers.remove()
finish(steps=told.steps, left=torch.optim.SGD.step is bare)
"""

# Nobody watches, and in the middle of a pass the debugger asks the run to stop.
LONG = """
heard = []
told.gradb_heed = lambda handle: heard.append(len(heard))
def one_pass(took):
    agent.set_watching(False)
    agent.words.armed = 0
    agent._backward.took = took
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda gradient: setattr(agent.words, "armed", 1))
    for _ in range(3):
        z = (y if _ == 0 else z).exp()
    z.sum().backward()
    return x.grad
short = one_pass(0.0)
before = len(heard)
long = one_pass(60.0)
finish(before=before, heard=len(heard), same=torch.equal(short, long),
       next=agent._backward.took < 60)
"""

# Nobody watches, and in the middle of a forward pass, some modules deep, the debugger wants reports of nodes.
DEEP = """
asks = False
class Made(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.__dict__["inside"] = inside  # no child: it has no name of its own
    def forward(self, x):
        return torch.sigmoid(self.inside(x))
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
    def forward(self, x):
        x = torch.sin(self.first(x))
        if asks:
            ctypes.c_int.from_address(agent.handle).value = 1
        return torch.cos(self.second(x))
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last, self.aside = Inner(), nn.Linear(2, 1), nn.Identity()
    def forward(self, x):
        with torch.no_grad():
            self.aside(x)
        return torch.tanh(self.last(torch.exp(Made(self.inner)(torch.relu(x)))))
net, after = nn.Sequential(Outer(), nn.ReLU()), nn.Softplus()
def loss_of(step):
    global asks
    asks = step == 2
    ctypes.c_int.from_address(agent.handle).value = int(step == 0)
    return after(net(torch.ones(3, 2))).sum()
agent.set_watching(False)
agent.set_watching(True)
train(net, loss_of, 3)
finish(path=agent.modules.path())
"""

# Each place where a training goes through the agent is made to raise.
FAULTS = """
net = nn.Linear(2, 1)
x = torch.ones(3, 2)
def program():
    nn.init.ones_(net.weight)
    nn.init.ones_(net.bias)
    train(net, lambda step: net(x).sum(), 2)
    return net.weight.detach().clone()
def fail(*args, **kwargs):
    raise ValueError("broken")
expected = program()
same, disarmed, left = {}, {}, {}
for place in ("reporter._operator_ran", "reporter._backward_node_ran", "reporter._gradient_ran", "optimizers._tell",
              "steps.enter", "events.step_ended", "modules._enter"):
    part, name = place.split(".")
    part = getattr(agent, part)
    setattr(part, name, fail)
    same[place] = torch.equal(program(), expected)
    disarmed[place] = agent.dead
    net(x)
    left[place] = torch._C._len_torch_function_stack()
    delattr(part, name)
    agent.dead = False
    agent.steps.begin()
    agent.set_watching(True)
finish(same=same, disarmed=disarmed, left=left)
"""


@torches.both
class Modes(programs.Programs):
    def test_what_is_computed_is_the_same(self):
        done = self.run_program(MODES)
        self.assertNotIn("gradb/torch", done.stderr)  # a warning of the tracer's, for example
        told = programs.Told(done.stdout)
        self.assertEqual({name: True for name in told.answer["equal"]}, told.answer["equal"])
        self.assertEqual(told.answer["raised"], [True, True])
        self.assertEqual(set(told.answer["survived"]), {True})
        self.assertFalse(told.answer["added_up"])
        modes = int(torches.on_device(self))  # the default device
        self.assertEqual((told.answer["left"], told.answer["path"], told.answer["inside"]), (modes, "", False))
        # what is recomputed is the same node; scripted code is one node
        self.assertIn("net/block/fc/linear", told.nodes)
        for step in range(told.answer["ran"][-1][0] + 1):
            self.assertLessEqual(sum(name.startswith("net/block/fc/linear") for name in told.ran(step)), 1)
        self.assertEqual(told.nodes["net/script"]["type"], "script")
        self.assertTrue([text for kind, text in told.answer["events"] if kind == "unseen" and "TorchScript" in text])

    def test_looking_begins_deep_inside_of_a_forward_pass(self):
        told = self.told(DEEP)
        whole, unseen, rest = told.ran(0), told.ran(1), told.ran(2)
        self.assertEqual(unseen, [])
        # the module at whose call watching began and everything after it, back to there in the backward pass, have the
        # names they had
        first, last = "net/0/inner/second/linear", "backward/net/0/inner/second/linear"
        self.assertIn("net/0/Made/sigmoid", whole)
        self.assertEqual(rest[rest.index(first):rest.index(last)], whole[whole.index(first):whole.index(last)])
        self.assertNotIn("net/0/inner/first/linear", rest)
        self.assertEqual(told.answer["path"], "")

    def test_compiled_code_is_left_alone(self):
        torches.need_compile(self)
        told = self.told("KINDS = ['module', 'inplace', 'function', 'optimizer', 'all']" + COMPILED)
        # losses, and the number of compilations
        self.assertEqual(told.answer["equal"], {kind: [True, True] for kind in told.answer["equal"]})
        self.assertEqual(told.answer["steps"], {kind: 4 for kind in told.answer["steps"]})
        self.assertIn("numbers/ones", told.nodes["model/compiled"]["inputs"])
        self.assertIn("backward/model/compiled", told.nodes)
        warnings = [text for kind, text in told.answer["events"] if kind == "unseen"]
        self.assertEqual(len([text for text in warnings if "TORCH_COMPILE_DISABLE=1" in text]), 2, warnings)

    def test_the_compiler_takes_the_hooks_of_optimizers(self):
        if torches.release_of(self.python) < (2, 0):
            self.skipTest("before 2.0 optimizers have no hooks")
        told = self.told(UNHOOKED)
        self.assertEqual((told.answer["steps"], told.answer["left"]), (4, True))

    def test_an_interrupt_is_heard_in_a_long_backward_pass(self):
        told = self.told(LONG)
        # by the operators after that place: exp and the accumulation of the gradient
        self.assertEqual((told.answer["before"], told.answer["heard"]), (0, 2))
        self.assertTrue(told.answer["same"] and told.answer["next"])

    def test_nothing_is_asked_while_a_cuda_graph_is_recorded(self):
        told = self.told(RECORDED)
        self.assertEqual(told.answer["asked"], [])
        self.assertEqual(told.answer["steps"], 2)
        self.assertEqual(len([text for kind, text in told.answer["events"] if "CUDA graph" in text]), 1)


@torches.both
class Faults(programs.Programs):
    def test_the_training_goes_on_without_the_agent(self):
        done = self.run_program(FAULTS)
        answer = programs.Told(done.stdout).answer
        names = "modules._enter"  # names are optional: it continues without
        self.assertEqual(answer["same"], {place: True for place in answer["same"]})
        self.assertEqual(answer["disarmed"], {place: place != names for place in answer["disarmed"]})
        modes = int(torches.on_device(self))  # the default device
        self.assertEqual(answer["left"], {place: modes + (place == names) for place in answer["left"]})
        self.assertRegex(done.stderr, r"\A(gradb: internal error, the agent is off now: ValueError: broken "
                         r"\(\S+:\d+\)\n){6}\Z")


# Counts what a class of tensors, modes of function and dispatch, and the getattr of a module are asked for.
COUNTS = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
count = dict.fromkeys(("class", "mode", "dispatch", "getattr"), 0)

class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        count["class"] += 1
        return super().__torch_function__(func, types, args, kwargs or {})

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        count["mode"] += 1
        return func(*args, **(kwargs or {}))

class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        count["dispatch"] += 1
        return func(*args, **(kwargs or {}))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def __getattr__(self, name):
        count["getattr"] += 1
        return super().__getattr__(name)

    def forward(self, x):
        return self.linear(x).relu()

net = Net()
own = torch.nn.Parameter(torch.ones(2).as_subclass(Own))
optimizer = torch.optim.SGD([*net.parameters(), own], lr=0.1)

def train(steps, plain=False):
    for step in range(steps):
        optimizer.zero_grad()
        x = torch.randn(3, 4)
        (net(x).sum() if plain else net(x.as_subclass(Own)).sum() + own.sum()).backward()
        optimizer.step()
count.update(dict.fromkeys(count, 0))
train(6)
with Mode():
    train(6)
with Dispatch():
    train(6, plain=True)
print("counts", count)
"""


@torches.both
class Unseen(torches.Folder):
    """No code of the program's sees what the agent asks of tensors."""

    def test_counts(self):
        script = self.write("counts.py", COUNTS)
        alone = subprocess.run([self.python, script], env=torches.environment(), capture_output=True, text=True, check=True)
        expected = alone.stdout[alone.stdout.index("counts"):]
        for native in ("1", "0"):
            for before in ((), ("step 8", "next 3"), ("watch TL abs_mean_gt=1e9 on weights",), ("watch TO on activations",)):
                with self.subTest(native=native, before=before):
                    done = self.gradb([self.python, script], *before, "continue", "info log", GRADB_NATIVE=native)
                    found = re.search("counts .*", done.stdout).group() + "\n"
                    if "activations" in str(before):  # autograd copies a gradient that is referred to, once
                        found, wanted = (re.sub("'dispatch': [0-9]+", "", text) for text in (found, expected))
                        self.assertEqual(found, wanted)
                    else:
                        self.assertEqual(found, expected)


@torches.both
class Same(torches.Folder):
    """A training that uses much of PyTorch computes the same whatever the debugger asks, and however it ends."""
    ASKED = (("continue",),
             ("catch oom", "metric accuracy", "metric mse", "set memory-metrics on", "on step-end every 3 echo .",
              "on eval-begin echo e", "step 2", "info memory", "dprintf /.*/,\"%s\\n\",loss", "step 2", "delete",
              "info memory", "checkpoint kept", "set lr = lr", "continue"),
             ("catch oom", "metric accuracy", "agent aten on", "step 3", "info timing", "detach"))

    def setUp(self):
        super().setUp()
        self.script, self.digest = str(torches.SCRIPTS / "features.py"), self.folder / "digest"

    def alone(self):
        subprocess.run([*torches.warm(self.python), self.script, str(self.digest)], check=True, capture_output=True,
                       env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        return self.taken()

    def taken(self):
        harness.wait_for("the script to end", self.digest.exists)
        text = self.digest.read_text()
        self.digest.unlink()
        return text

    def test_whatever_is_asked(self):
        alone = self.alone()
        for asked in self.ASKED:
            with self.subTest(asked=asked):
                done = self.gradb([self.python, self.script, str(self.digest)], *asked)
                self.assertNotIn("internal error", done.stdout + done.stderr)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertEqual(self.taken(), alone, done.stdout + done.stderr)

    def test_when_the_debugger_is_killed(self):
        alone = self.alone()
        with harness.Gradb(command=("run", "--", *torches.warm(self.python), self.script, str(self.digest)),
                           env=torches.environment(), cwd=self.folder) as gradb:
            gradb.expect("Stopped before the first step")
            for line in self.ASKED[1][:5]:
                gradb.send(line)
            gradb.run("step 2", "end of step 2")
            gradb.process.kill()
            self.assertEqual(self.taken(), alone)


if __name__ == "__main__":
    harness.main()
