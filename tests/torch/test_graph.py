# SPDX-License-Identifier: GPL-3.0-or-later
"""The graph as a PyTorch training runs: names, edges, stacks, growth, backward passes, errors; what the agent must not
disturb. Most cases run a small program with a fake libgradb that records what it receives."""
import harness
import programs
import torches


@torches.both
class Names(programs.Programs):
    def test_scopes_operators_and_ordinals(self):
        told = self.told("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, x):
        for layer in self.fc:
            x = torch.relu(layer(x)) @ torch.eye(4)
        x = x + 1
        x += 1
        return x[:, :2]
net = Net()
x = torch.ones(2, 4)
train(net, lambda step: net(x).sum(), 3)
""")
        for name, kind in (("net/fc/0/linear", "linear"), ("net/fc/1/linear", "linear"), ("net/relu", "relu"),
                           ("net/relu_1", "relu"), ("net/matmul_1", "matmul"), ("net/add", "add"),
                           ("net/add_", "add_"), ("net/getitem", "getitem"), ("train/sum", "sum"), ("net/eye", "eye"),
                           ("backward/net/relu_1", "ReluBackward0"), ("net/fc/0/weight", "Parameter"),
                           ("net/fc/0/weight.grad", "Gradient")):
            self.assertEqual(told.nodes[name]["type"], kind)
        self.assertEqual(told.nodes["net/relu_1"]["inputs"], ["net/fc/1/linear"])
        self.assertEqual(told.ran(1), told.ran(2))
        self.assertEqual(told.nodes["backward/net/relu_1"]["attrs"]["forward"], "net/relu_1")

    def test_a_call_is_the_same_node_whatever_runs_before_it(self):
        told = self.told("""
net = nn.Linear(2, 1)
def judge(x):
    return net(x).relu()
def of_real():
    return judge(torch.ones(1, 2))
def of_fake():
    return judge(torch.zeros(1, 2))
def loss(step):
    found = [make() for make in ((of_fake, of_real) if step % 2 else (of_real, of_fake))]
    for _ in range(step):
        found.append(torch.exp(found[0]))
    return torch.cat(found).sum()
train(net, loss, 4)
""")
        real, fake = ["net/linear", "judge/relu"], ["net/linear_1", "judge/relu_1"]
        for name in real + fake:
            functions = [function for _, function, _ in told.nodes[name]["frames"]]
            self.assertEqual(("of_real" in functions, "of_fake" in functions), (name in real, name in fake))
        for step in range(4):
            found = [name for name in told.ran(step) if name in real + fake]
            self.assertEqual(found, fake + real if step % 2 else real + fake)
            self.assertEqual([name for name in told.ran(step) if name.startswith("loss/exp")],
                             ["loss/exp", "loss/exp_1", "loss/exp_2"][:step])
            self.assertLessEqual({"backward/" + name for name in real + fake}, set(told.ran(step)))

    def test_properties_factories_and_empty_memory_are_no_nodes(self):
        told = self.told("""
w = nn.Parameter(torch.ones(3, 3))
unused = torch.zeros(5)
x = torch.ones(3, 3)
y = (w @ x.T).data
z = torch.empty(3).fill_(1)
y.shape, y.dtype, y.size(), y.dim(), len(y), repr(y), y.tolist(), y.is_contiguous(), y.device
agent.reporter.flush()
""")
        self.assertNotIn("zeros", told.nodes)
        self.assertNotIn("empty", told.nodes)
        self.assertEqual(told.nodes["matmul"]["inputs"], ["w", "ones_1"])
        self.assertIn("fill_", told.nodes)
        self.assertFalse([name for name in told.nodes if "get" in name or "size" in name or "repr" in name])

    def test_a_trainer_objects_models(self):
        told = self.told("""
class Trainer:
    def __init__(self):
        self.model = nn.Linear(2, 2)
        self.critics = [nn.Linear(2, 1), nn.Linear(2, 1)]
    def run(self):
        x = self.model(torch.ones(1, 2))
        for c in self.critics:
            c(x)
class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(1))
    def training_step(self):
        return self.net(torch.ones(1, 2)) * self.scale
Trainer().run()
lit = Lit()
lit.training_step()
agent.reporter.flush()
""")
        for name in ("model/linear", "critics/0/linear", "critics/1/linear", "lit/net/linear", "lit/scale"):
            self.assertIn(name, told.nodes)

    def test_a_model_that_makes_its_optimizer(self):
        told = self.told("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.head = nn.Linear(2, 1)
    def configure_optimizers(self):
        return torch.optim.SGD([p for p in self.parameters()], lr=0.1)
    def forward(self, x):
        return self.head(self.body(x))
class Agent(Net):
    def __init__(self):
        super().__init__()
        self.optimizer = self.configure_optimizers()
model, agents = Net(), [Agent()]
optimizer = model.configure_optimizers()
(model(torch.ones(1, 2)) + agents[0](torch.ones(1, 2))).sum().backward()
agent.reporter.flush()
""")
        for name in ("model/body/0/weight", "model/body/0/linear", "model/head/linear", "Agent/head/linear"):
            self.assertIn(name, told.nodes)
        roots = {name.split("/")[0] for name in told.nodes}
        self.assertFalse(roots & {"body", "head", "self"}, roots)

    def test_no_gradient_through_what_ran_without(self):
        told = self.told("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Linear(2, 2), nn.Linear(2, 1)
    def forward(self, x):
        with torch.no_grad():
            x = self.table(x).relu()
        return self.out(x)
net = Net()
train(net, lambda step: net(torch.ones(1, 2)).sum(), 2)
net.eval()
with torch.no_grad():
    net(torch.ones(1, 2))
agent.reporter.flush()
""")
        said = {name for name, node in told.nodes.items() if node["attrs"].get("grad") == "off"}
        self.assertEqual(said, {"net/table/linear"})
        self.assertIn("eval/net/table/linear", told.nodes)

    def test_memory_without_a_value_is_no_node(self):
        told = self.told("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        room = torch.ops.aten.empty_like.default(x)
        torch.ops.aten.copy_.default(room, x)
        return self.fc(room)
net = Net()
train(net, lambda step: net(torch.ones(1, 2)).sum(), 2)
""")
        self.assertEqual(told.nodes["net/fc/linear"]["inputs"][:1], ["net/copy_.default"])
        self.assertEqual([name for name in told.nodes if "empty" in name], [])

    def test_levels_that_only_wrap_are_left_out(self):
        told = self.told("""
inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
model = nn.DataParallel(inner)
del inner
model(torch.ones(1, 2))
averaged = torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2))
averaged(torch.ones(1, 2))
agent.reporter.flush()
""")
        self.assertIn("model/0/linear", told.nodes)
        self.assertIn("model/0/weight", told.nodes)
        self.assertIn("averaged/linear", told.nodes)
        self.assertFalse([name for name in told.nodes if "module" in name.split("/")])

    def test_evaluation_does_not_shift_the_names_of_the_training(self):
        told = self.told("""
net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
def evaluate():
    net.eval()
    with torch.no_grad():
        F.mse_loss(net(torch.ones(1, 2)), torch.zeros(1, 2))
    net.train()
def loss(step):
    if step == 2:
        evaluate()
    return F.mse_loss(net(torch.ones(1, 2)), torch.zeros(1, 2))
train(net, loss, 4)
""")
        trained = [name for name in told.ran(2) if not name.startswith("eval/")]
        self.assertEqual(trained, told.ran(1))
        self.assertIn("eval/net/0/linear", told.ran(2))
        self.assertIn("eval/evaluate/mse_loss", told.ran(2))
        self.assertEqual([event for event in told.answer["events"] if event[0] == "graph-changed"], [])

    def test_what_a_data_loader_runs(self):
        told = self.told("""
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(3) * index
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(x)
net = Net()
loader = DataLoader(Data(), batch_size=2)
batches = []
def loss(step):
    batches[:] = batches or list(loader)
    with torch.no_grad():
        for held_out in DataLoader(Data(), batch_size=4):
            net(held_out + 1)
    return net(batches.pop() + 1).sum()
train(net, loss, 4)
""")
        made = {name for name in told.nodes if name.split("/")[-1].split("_")[0] in ("ones", "mul", "stack")}
        self.assertLessEqual({"data/__getitem__/mul", "data/__getitem__/mul_3", "data/stack", "data/stack_1",
                              "eval/data/__getitem__/mul_3"}, made)
        self.assertEqual([name for name in made if not name.startswith(("data/", "eval/data/"))], [])
        self.assertLessEqual({"loss/add", "eval/loss/add", "net/fc/linear", "loss/sum"}, set(told.nodes))

    def test_a_parameter_that_stays_as_it_is_comes_from_nowhere(self):
        told = self.told("""
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return self.weight.to(torch.float32) * x.to(torch.float64).to(torch.float32)
net = Scale()
def loss(step):
    if step == 0:
        net.to(net.weight.device)
    return net(torch.ones(3)).sum()
train(net, loss, 3)
""")
        self.assertEqual(sorted(name for name in told.nodes if told.nodes[name]["type"] == "to"),
                         ["net/to", "net/to_1"])
        self.assertEqual(told.nodes["net/mul"]["inputs"], ["net/weight", "net/to_1"])

    def test_helpers_and_counters(self):
        told = self.told("""
net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
agent.discover(optimizer)
for step in range(2):
    net(torch.rand(4, 2)).sum().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
agent.reporter.flush()
""")
        self.assertTrue([name for name in told.nodes if name.startswith("clip_grad_norm_/")])
        self.assertFalse([name for name in told.nodes if "zero_" in name])
        self.assertNotIn("net/1/add_", told.nodes)
        self.assertIn("net/0/weight.grad", [source for node in told.nodes.values() for source in node["inputs"]
                                            if node["name"].startswith("clip_grad_norm_/")])


@torches.both
class Frames(programs.Programs):
    """Which frames of a stack are shown by default."""

    PACKAGE = """
import types
SOURCE = (
"import torch\\n"
"def scaled(x):\\n"
"    return x.mul(2)\\n"
"class Net(torch.nn.Module):\\n"
"    def __init__(self):\\n"
"        super().__init__()\\n"
"        self.fc = torch.nn.Linear(2, 1)\\n"
"    def forward(self, x):\\n"
"        check(x)\\n"
"        return scaled(self.fc(x))\\n"
"def check(x):\\n"
"    if x.shape[-1] != 2:\\n"
"        raise ValueError(x.shape)\\n"
"def fit(steps, step):\\n"
"    for _ in range(steps):\\n"
"        step()\\n")
net = types.ModuleType("net")
net.__file__ = "/opt/site-packages/some/net.py"
exec(compile(SOURCE, net.__file__, "exec"), vars(net))
exec("def made_at_run_time(x):\\n    return x.neg()\\n", vars(net))
"""

    def _shown(self, told, name):
        return [function for _, function, library in told.nodes[name]["frames"] if not library]

    def test_a_model_of_a_package(self):
        told = self.told(self.PACKAGE + """
model = net.Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
def main():
    net.fit(2, step)
main()
from gradb.torch import stack
places = []
for function in model, net.check:
    try:
        function(torch.ones(1, 3))
    except ValueError as error:
        places.append(stack.raised_at(error.__traceback__)[0][0].co_name)
finish(places=places)
""")
        self.assertEqual(told.answer["places"], ["check", "<module>"])
        self.assertEqual(self._shown(told, "model/mul"), ["scaled", "forward", "step", "main", "<module>"])
        self.assertEqual(self._shown(told, "model/fc/linear"), ["forward", "step", "main", "<module>"])
        self.assertEqual(self._shown(told, "backward/model/mul"), ["scaled", "forward", "step", "main", "<module>"])
        self.assertEqual(self._shown(told, "step/sum"), ["step", "main", "<module>"])

    def test_helpers_and_loops_of_a_package(self):
        told = self.told(self.PACKAGE + """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
    def forward(self, x):
        return net.made_at_run_time(net.scaled(self.fc(x)))
model = Own()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
net.fit(2, step)
finish()
""")
        self.assertEqual(self._shown(told, "model/mul"), ["forward", "step", "<module>"])
        self.assertEqual(self._shown(told, "model/neg"), ["forward", "step", "<module>"])


@torches.both
class Edges(programs.Programs):
    def test_views_writes_and_tied_weights(self):
        told = self.told("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
    def forward(self, x):
        y = self.a(x).clone()
        view = y[0]
        y.mul_(2)
        out = view + 1
        view.add_(3)
        late = y * 5
        y[1] = 0
        return self.b(out) + late.sum() + y.exp().sum()
net = Net()
train(net, lambda step: net(torch.ones(2, 2)).sum())
""")
        nodes = told.nodes
        self.assertEqual(nodes["net/add"]["inputs"], ["net/mul_"])          # written through its base
        self.assertEqual(nodes["net/mul"]["inputs"], ["net/add_"])          # written through a view
        self.assertEqual(nodes["net/exp"]["inputs"], ["net/setitem"])
        self.assertEqual(nodes["net/b/linear"]["inputs"], ["net/add", "net/a/weight"])
        self.assertNotIn("net/b/weight", nodes)

    def test_state_that_is_kept_over_steps(self):
        told = self.told("""
cell = nn.RNNCell(2, 3)
hidden = torch.zeros(1, 3)
def loss(step):
    global hidden
    hidden = cell(torch.ones(1, 2), hidden.detach())
    return hidden.sum()
train(cell, loss, 3)
""")
        cell = [node for node in told.nodes.values() if node["name"].startswith("net/rnn")][0]
        self.assertIn("loss/detach", cell["inputs"])
        self.assertIn(cell["name"], told.nodes["loss/detach"]["inputs"])

    def test_tensors_from_outside(self):
        told = self.told("""
agent.set_watching(False)
data = torch.ones(8, 2)
batches = [{"x": torch.ones(4, 2), "y": torch.zeros(4, 1)} for _ in range(3)]
agent.set_watching(True)
net = nn.Linear(2, 1)
def loss(step):
    batch = batches[step]
    return F.mse_loss(net(batch["x"]), batch["y"]) + net(data).sum()
train(net, loss, 3)
""")
        inputs = sorted(name for name in told.nodes if told.nodes[name]["type"] == "Input")
        self.assertEqual(len(inputs), 3, inputs)
        self.assertIn("input/data", inputs)
        for step in (0, 1, 2):
            self.assertEqual(sorted(name for name in told.ran(step) if name in inputs), inputs)

    def test_results_in_containers(self):
        told = self.told("""
import collections, dataclasses
Pair = collections.namedtuple("Pair", "first second")
lstm = nn.LSTM(2, 3)
out, (h, c) = lstm(torch.ones(1, 1, 2))
pair = Pair(*torch.split(out, [1, 2], dim=2))
values, indices = pair.second.max(dim=2)
(values + h.sum() + c.sum()).sum().backward()
agent.reporter.flush()
""")
        self.assertEqual(len(told.nodes["lstm/lstm"]["dtypes"]), 3)
        self.assertEqual(told.nodes["max"]["inputs"], ["split"])
        self.assertEqual(told.nodes["add"]["inputs"], ["max", "sum"])


@torches.both
class Backward(programs.Programs):
    def test_slots_without_a_tensor_have_no_type(self):
        told = self.told("""
net = nn.Linear(2, 2)
train(net, lambda step: net(torch.ones(1, 2)).sum())
""")
        self.assertEqual([bool(dtype) for dtype in told.nodes["backward/net/linear"]["dtypes"]], [True, False, True])

    def test_custom_function_and_its_scope(self):
        told = self.told("""
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()
    @staticmethod
    def backward(ctx, gradient):
        return gradient.cos()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
    def forward(self, x):
        return self.b(Twice.apply(self.a(x)))
net = Net()
train(net, lambda step: net(torch.ones(1, 2)).sum(), 2)
""")
        self.assertEqual(told.nodes["net/b/linear"]["inputs"][0], "net/Twice")
        self.assertEqual(told.nodes["net/Twice"]["inputs"], ["net/a/linear"])
        self.assertEqual(told.nodes["backward/net/Twice"]["type"], "TwiceBackward")
        self.assertEqual(told.nodes["backward/Twice/cos"]["type"], "cos")

    def test_checkpointing_makes_no_new_forward_nodes(self):
        told = self.told("""
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    def forward(self, x, reentrant):
        return checkpoint(self.block, x, use_reentrant=reentrant).exp()
net = Net()
x = torch.ones(1, 2, requires_grad=True)
for reentrant in (True, False):
    train(net, lambda step: net(x, reentrant).sum(), 2)
""")
        forward = [name for name in told.nodes if name.startswith("net/block")
                   and told.nodes[name]["phase"] == 1]
        self.assertEqual(sorted(forward), ["net/block/0/linear", "net/block/1/tanh"])
        self.assertEqual(told.nodes["backward/net/block/1/tanh"]["type"], "TanhBackward0")
        self.assertEqual(told.answer["stops"], [])
        for step in range(4):
            self.assertEqual(told.ran(step).count("net/block/1/tanh"), 1)

    def test_double_backward_and_retained_graphs(self):
        told = self.told("""
net = nn.Linear(2, 1)
x = torch.ones(3, 2, requires_grad=True)
def loss(step):
    value = net(x).exp().sum()
    gradient, = torch.autograd.grad(value, x, create_graph=True)
    penalty = gradient.norm()
    penalty.backward(retain_graph=True)
    return penalty
train(net, loss, 3)
""")
        self.assertEqual(told.nodes["loss/norm"]["inputs"], ["backward/net/linear"])
        self.assertTrue([name for name in told.nodes if name.startswith("backward/backward/")])
        self.assertEqual(told.ran(2), told.ran(1))
        self.assertEqual(told.ran(1).count("backward/loss/norm"), 1)
        self.assertIn("backward/loss/norm.2", told.ran(1))  # the second pass goes through it again

    def test_an_exception_in_a_pass_leaves_no_hook(self):
        told = self.told("""
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient today")
w = torch.ones(2, requires_grad=True)
y = (w * 2).exp()
z = Bad.apply(y).sum()
for _ in range(2):
    try:
        z.backward(retain_graph=True)
    except ValueError:
        pass
runs = len(told.ran)
agent.set_watching(False)
ctypes.c_int.from_address(agent.handle).value = 0
y.sum().backward()
finish(quiet=len(told.ran) == runs)
""")
        self.assertEqual(len(told.answer["stops"]), 2)
        for stop in told.answer["stops"]:
            self.assertRegex(stop, r"^backward raised ValueError: no gradient today \(program\.py:\d+ in backward\)$")
        self.assertTrue(told.answer["quiet"])


@torches.both
class Errors(programs.Programs):
    def test_each_error_stops_once(self):
        told = self.told("""
class Net(nn.Module):
    def forward(self, x):
        for wrong in (3, 4):
            try:
                return x @ torch.ones(wrong, wrong)
            except RuntimeError:
                pass
        return F.linear(x, torch.ones(7, 7))
net = Net()
outer = nn.Sequential(net)
try:
    outer(torch.ones(2, 2))
except RuntimeError as error:
    kept = error
""")
        stops = told.answer["stops"]
        self.assertEqual(len(stops), 3, stops)
        self.assertRegex(stops[0], "^outer/0/matmul raised RuntimeError: ")
        self.assertRegex(stops[1], "^outer/0/matmul_1 raised RuntimeError: ")
        self.assertRegex(stops[2], "^outer/0/linear raised RuntimeError: ")


@torches.both
class Change(programs.Programs):
    def test_a_changed_set_of_nodes_is_told_once(self):
        told = self.told("""
net = nn.Linear(2, 2)
def loss(step):
    y = net(torch.ones(1, 2))
    return (y.exp() if step in (3, 5) else y).sum()
train(net, loss, 8)
""")
        events = [text for kind, text in told.answer["events"] if kind == "graph-changed"]
        self.assertEqual(len(events), 1, events)
        self.assertRegex(events[0], "^2 nodes ran that did not run in step 3: loss/exp, backward/loss/exp$")


@torches.both
class Undisturbed(programs.Programs):
    def test_modes_of_the_program(self):
        if self.which() == torches.debian():
            self.skipTest("before 2.0 a device is not a mode")
        told = self.told("""
net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
agent.discover(optimizer)
def step():
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
with torch.device("meta"):
    agent.set_watching(False)
    agent.set_watching(True)
    made = torch.ones(2)
after = torch.ones(2)
torch.set_default_device("cpu")
step()
torch.set_default_device(None)
with torch.autocast("cpu", dtype=torch.bfloat16):
    step()
agent.set_watching(False)
finish(made=str(made.device), after=str(after.device), modes=torch._C._len_torch_function_stack())
""")
        self.assertEqual((told.answer["made"], told.answer["after"], told.answer["modes"]), ("meta", "cpu", 0))

    def test_tracing_scripting_fx_and_inference(self):
        told = self.told("""
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
x = torch.ones(1, 2)
expected = net(x)
agent.reporter.flush()
before = len(told.nodes)
traced = torch.jit.trace(net, x, check_trace=False)
scripted = torch.jit.script(net)
symbolic = torch.fx.symbolic_trace(net)
agent.reporter.flush()
nodes = len(told.nodes) - before
scripted(x)
same = all(torch.equal(f(x), expected) for f in (traced, scripted, symbolic))
with torch.inference_mode():
    y = net(x)
    y.add_(1)
agent.reporter.flush()
finish(same=same, made=nodes)
""")
        self.assertTrue(told.answer["same"])
        self.assertEqual(told.answer["made"], 0)
        self.assertIn("scripted/script", told.nodes)

    def test_compiled_models(self):
        torches.need_compile(self)
        told = self.told("""
torch.manual_seed(0)
def run(compiled):
    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    model = torch.compile(plain, backend="eager") if compiled else plain
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    agent.discover(optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()
same = run(False) == run(True)
finish(same=same)
""")
        self.assertTrue(told.answer["same"])
        self.assertEqual(len([text for kind, text in told.answer["events"] if kind == "unseen"]), 1)
        self.assertTrue([name for name in told.nodes if name.endswith("/compiled")])

    def test_nothing_of_the_programs_is_kept(self):
        told = self.told("""
def model():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    train(net, lambda step: net(torch.rand(4, 4)).mean(), 3)
    return weakref.ref(net), weakref.ref(net[0].weight), weakref.ref(net[1].running_mean)
gone = model()
gc.collect()
left = sum(reference() is not None for reference in gone)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
agent.discover(optimizer)
def steps(count):
    for _ in range(count):
        optimizer.zero_grad()
        loss = net(torch.rand(4, 4)).mean()
        graph = weakref.ref(loss)
        loss.backward()
        optimizer.step()
        told.ran.clear()
    del loss
    agent.events.settle()  # numbers that are on their way from a device
    return graph
gc.disable()
steps(20)
objects = len(gc.get_objects())
graph = steps(1000)
growth = len(gc.get_objects()) - objects
finish(left=left, growth=growth, alive_loss=graph() is not None, names=len(told.nodes))
""")
        self.assertEqual(told.answer["left"], 0)
        self.assertFalse(told.answer["alive_loss"])
        self.assertLess(told.answer["growth"], 500)

    def test_a_backward_pass_of_another_thread_is_left_alone(self):
        told = self.told("""
import threading
begun, over = threading.Event(), threading.Event()
class Waits(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, gradient):
        begun.set()
        over.wait()
        return gradient * 2
leaf = torch.ones(3, requires_grad=True)
thread = threading.Thread(target=lambda: Waits.apply(leaf).sum().backward())
thread.start()
begun.wait()
net = nn.Linear(3, 1)
train(net, lambda step: torch.relu(net(torch.ones(2, 3))).mean(), 2)
steps = told.steps
over.set()
thread.join()
finish(steps=steps, gradient=leaf.grad.tolist())
""")
        self.assertEqual((told.answer["steps"], told.answer["gradient"]), (2, [2, 2, 2]))
        for step in range(2):
            self.assertLessEqual({"net/linear", "train/relu", "backward/train/relu", "net/weight.grad"}, set(told.ran(step)))
        self.assertEqual([name for name in told.nodes if "Waits" in name or "Sum" in name], [])

    def test_all_is_taken_off(self):
        modes = int(torches.on_device(self))  # the default device
        told = self.told("modes = %d" % modes + """
import os
from gradb.torch import ops
before = (torch.Tensor.__getitem__,)
net = nn.Linear(2, 2)
net(torch.ones(1, 2))
agent.close()
off = not vars(torch.Tensor).get("__getitem__") and torch._C._len_torch_function_stack() == modes
plain = "gradb" not in torch.nn.Module.__call__.__module__ and "gradb" not in type(
    torch.autograd.Variable._execution_engine).__module__ and not any(
    function.__code__.co_filename.startswith(os.path.dirname(ops.__file__)) for function in (
        torch.optim.Optimizer.__init__, torch.optim.Optimizer.zero_grad))
agent.dead = False
finish(off=off, plain=plain)
""")
        self.assertTrue(told.answer["off"])
        self.assertTrue(told.answer["plain"])


@torches.both
class Scripts(torches.Folder):
    """Whole scripts under gradb."""

    def script(self, name, *commands):
        path = str(torches.SCRIPTS / (name + ".py"))
        done = self.gradb([self.python, path, "--steps", "6"] if name != "workers" else [self.python, path], *commands)
        return done.stdout + done.stderr

    def test_every_value_that_exists_can_be_checked(self):
        for name in ("mlp", "cnn", "gan", "accumulate", "workers"):
            with self.subTest(script=name):
                text = self.script(name, "watch TO on all", "step 4", "info hits")
                self.assertIn("Stopped at the end of step 4", text)
                self.assertIn("No watchpoint has fired", text)
                self.assertNotIn("could not be checked", text)

    def test_the_users_line_is_shown(self):
        text = self.script("gpt", "step", "run-to gpt/blocks/1/attn/softmax", "bt")
        self.assertRegex(text, r"gpt/blocks/1/attn/softmax \(softmax\)\n\S*gpt\.py:31\t\s+weights = F\.softmax")
        self.assertRegex(text, r"gpt\.py:31 in forward")
        self.assertRegex(text, r"hidden: backtrace all")
        self.assertNotIn("overrides.py", text)

    def test_edges_and_backward_of_a_script(self):
        text = self.script("mlp", "step", "info node net/relu", "info node backward/net/relu",
                           "info node net/fc1/weight.grad", "bt backward/net/relu")
        self.assertRegex(text, r"net/relu\n  type +relu, activation(.*\n)+?  input +net/fc1/linear \(linear\)")
        self.assertRegex(text, r"used by +net/fc2/linear \(linear\)")
        self.assertRegex(text, r"attribute +forward = net/relu\n")
        self.assertRegex(text, r"made at +\S*mlp\.py:\d+ in forward")
        self.assertRegex(text, r"input +backward/net/fc1/linear/TBackward0 \(TBackward0\)")

    def test_the_inside_of_operators(self):
        text = self.script("mlp", "step", "agent aten on", "step", "info node net/fc1/linear/aten.addmm",
                           "info node backward/net/out/linear/aten.mm")
        self.assertRegex(text, r"net/fc1/linear/aten\.addmm\n  type +aten\.addmm, activation")
        self.assertRegex(text, r"backward/net/out/linear/aten\.mm\n  type +aten\.mm, gradient")


if __name__ == "__main__":
    harness.main()
