# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of PyTorch tensors: of every kind, equal bit for bit to the program's; why there are none; those of the
previous step; scaled gradients; and what is computed on the tensor's device."""
import json
import subprocess

import numpy as np

import harness
import torches

STATS_LIBRARY = harness.BUILD / "tests" / "torch" / "libstats_of.so"

# Tensors of all kinds as buffers of a module, each written to FOLDER by numpy.
ZOO = """
import sys
import numpy
import torch

def number(dtype):
    return torch.arange(-3, 9, dtype=torch.float64).reshape(3, 4).to(dtype)

tensors = {}
for name in ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
             "complex128"):
    tensors[name] = number(getattr(torch, name))
for name in ("uint8", "uint16", "uint32", "uint64"):
    if hasattr(torch, name):
        tensors[name] = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
tensors["bool"] = number(torch.float32) > 2
tensors["odd"] = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38])
tensors["transposed"] = number(torch.float32).t()
tensors["strided"] = torch.arange(40.0).reshape(5, 8)[1::2, ::3]
tensors["permuted"] = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
tensors["expanded"] = torch.arange(3.0).reshape(3, 1).expand(3, 5)
tensors["diagonal"] = torch.arange(16.0).reshape(4, 4).diagonal()
tensors["flipped"] = torch.arange(6.0).flip(0)
tensors["empty"] = torch.zeros(4, 0)
tensors["scalar"] = torch.tensor(2.5)
tensors["conjugate"] = torch.complex(torch.arange(3.0), torch.ones(3)).conj()
tensors["negative"] = torch.complex(torch.arange(3.0), torch.ones(3)).conj().imag
if hasattr(torch, "float8_e4m3fn"):
    for name in ("float8_e4m3fn", "float8_e5m2"):
        tensors[name] = number(torch.float32).to(getattr(torch, name))

class Mine(torch.Tensor):
    pass
tensors["subclass"] = torch.arange(5.0).as_subclass(Mine)

class Shard(torch.Tensor):  # as DTensor has it
    @staticmethod
    def __new__(cls, local, shape):
        self = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=local.dtype)
        self._local_tensor = local
        return self
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError("nothing may be computed with it")
    def __repr__(self):
        return "Shard"
tensors["shard"] = Shard(torch.arange(8.0).reshape(2, 4), (8, 4))

hidden = dict(tensors)
here = {"device": "cpu"}
hidden["sparse"] = torch.eye(6, **here).to_sparse()
hidden["csr"] = torch.eye(6, **here).to_sparse_csr()
hidden["quantised"] = torch.quantize_per_tensor(torch.arange(4.0, **here), 0.1, 0, torch.qint8)
hidden["half_complex"] = torch.zeros(3, dtype=torch.complex32)
hidden["meta"] = torch.zeros(3, device="meta")
hidden["nested"] = torch.nested.nested_tensor([torch.ones(2, **here), torch.ones(3, **here)], **here) if hasattr(
    torch.nested, "nested_tensor") else torch.nested_tensor([torch.ones(2), torch.ones(3)])
hidden["given_back"] = torch.ones(100, **here)[10:]
storage = hidden["given_back"].untyped_storage() if hasattr(torch.Tensor, "untyped_storage") \\
    else hidden["given_back"].storage()
storage.resize_(0)
try:
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        hidden["fake"] = torch.ones(3)
except ImportError:
    pass

class Zoo(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        for name, tensor in hidden.items():
            self.register_buffer("t_" + name, tensor)
    def forward(self, x):
        return (self.weight * x).sum()

for name, tensor in tensors.items():
    tensor = tensor.resolve_conj().resolve_neg() if name in ("conjugate", "negative") else tensor
    tensor = getattr(tensor, "_local_tensor", tensor)
    if tensor.dtype == torch.bfloat16:
        array = tensor.view(torch.int16).numpy().view("uint16")
    elif "float8" in name:
        array = tensor.float().numpy()
    else:
        array = tensor.detach().numpy()
    numpy.save(sys.argv[1] + "/" + name + ".npy", array)
zoo = Zoo()
optimizer = torch.optim.SGD([zoo.weight], lr=0.1)
for step in range(1000):
    optimizer.zero_grad()
    zoo(torch.ones(3)).backward()
    optimizer.step()
"""

# Operators whose values are gone, overwritten or kept; a thread that runs while the training is stopped.
NET = """
import pathlib
import sys
import threading
import torch

torch.manual_seed(1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.unused = torch.nn.Linear(4, 4)
        self.seen = torch.nn.Linear(4, 4)
        self.last = torch.nn.Linear(4, 1)
    def forward(self, x):
        x = torch.tanh(self.first(x))
        y = self.seen(x) + 1
        self.kept = y
        torch.nn.functional.relu_(y)
        self.view = torch.neg(x)
        self.view[0].zero_()
        pair = torch.split(x, 2, dim=1)
        self.holds = torch.abs(x)
        return self.last(y).mean() + pair[1].mean()

def count():
    done = 0
    while True:
        done += 1
        pathlib.Path(sys.argv[1], "count").write_text(str(done))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
threading.Thread(target=count, daemon=True).start()
data = torch.randn(8, 4)
for step in range(1000):
    loss = net(data)
    optimizer.zero_grad()
    loss.backward()
    for name, parameter in net.named_parameters():
        value = parameter.detach().numpy().copy()
        parameter.grad is None or open(sys.argv[1] + "/" + name + ".%d" % (step + 1), "wb").write(
            parameter.grad.numpy().tobytes())
    optimizer.step()
"""

SCALED = """
import torch
torch.manual_seed(1)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
for step in range(1000):
    optimizer.zero_grad()
    loss = net(torch.ones(2, 4)).pow(2).mean()
    scaler.scale(loss).backward()
    norm = torch.zeros(1) * net.weight.grad.sum()
    scaler.unscale_(optimizer)
    norm = torch.ones(1) * net.weight.grad.sum()
    scaler.step(optimizer)
    scaler.update()
"""


class Session(torches.Case):
    """A script under gradb, with commands typed in."""

    def start(self, text, *options, **env):
        """Runs the script to the first stop, with a folder of its own as its argument: self.out."""
        self.out = harness.folder_of(self)
        script = self.out / "script.py"
        script.write_text(text, encoding="utf-8")
        self.gradb = harness.Gradb("-nx", "--json", *options, env=torches.environment(**env),
                                   command=["run", "--", *torches.warm(self.python), str(script), str(self.out)])
        self.addCleanup(self.gradb.__exit__)
        self.gradb.expect('"type":"run"', 4 * harness.DEADLINE)  # the first one waits for torch's import

    def ask(self, line):
        """The record that a command returns."""
        self.gradb.send(line)
        word = line.split()[0].split("/")[0]
        while True:
            record = json.loads(self.gradb.expect(r'^\{.*"command":|^\{.*"type":"error"').string)
            if record.get("command", "").split()[:1] == [word] or record["type"] == "error":
                return record

    def good(self, line):
        """The same for a command that must neither fail nor end the training."""
        record = self.ask(line)
        self.assertNotEqual(record["type"], "error", self.gradb.text()[-4000:])
        self.assertNotEqual(record.get("state"), "finished", self.gradb.text()[-4000:])
        return record

    def error(self, line):
        """The message of a command that fails."""
        record = self.ask(line)
        self.assertEqual(record["type"], "error", record)
        return record["message"]

    def end(self):
        self.good("kill")
        self.gradb.send("quit")
        self.assertEqual(self.gradb.finish(), 0)


@torches.both
class Kinds(Session):
    maxDiff = None

    def test_what_is_saved_and_printed_is_what_the_program_holds(self):
        self.start(ZOO)
        self.good("step")
        names = sorted(path.stem for path in self.out.glob("*.npy"))
        self.assertGreater(len(names), 20)
        for name in names:
            with self.subTest(tensor=name):
                expected = np.load(self.out / (name + ".npy"))
                self.good(f"save zoo/t_{name} {self.out}/{name}.saved")
                saved = np.load(self.out / (name + ".saved"))
                self.assertEqual((saved.dtype, saved.shape), (expected.dtype, expected.shape))
                self.assertEqual(saved.tobytes(), np.ascontiguousarray(expected).tobytes())
        for name, piece in (("float32", "[1:, ::2]"), ("transposed", "[2, 1:]"), ("permuted", "[1:3, 0, ::-1]"),
                            ("expanded", "[:, 2]"), ("int64", "[-1]"), ("scalar", "")):
            with self.subTest(tensor=name, slice=piece):
                expected = np.load(self.out / (name + ".npy"))
                part = eval(f"expected{piece}", {"expected": expected})
                self.assertEqual(self.good(f"print zoo/t_{name}{piece}")["values"], part.tolist())
        self.end()

    def test_what_cannot_be_read_says_why(self):
        self.start(ZOO)
        self.good("step")
        reasons = {"sparse": r"sparse \(COO, 6 of 36 elements stored\): look at its to_dense\(\)",
                   "csr": r"sparse \(CSR, 6 of 36 elements stored\)", "quantised": r"quantized \(qint8\): look at its dequantize",
                   "half_complex": "complex32 cannot be shown", "meta": "meta device", "nested": "nested",
                   "given_back": "memory was released"}
        if torches.release_of(self.python) >= (2, 0):
            reasons["fake"] = "fake"
        for name, reason in reasons.items():
            with self.subTest(tensor=name):
                self.assertRegex(self.error(f"print zoo/t_{name}"), reason)
                self.assertRegex(self.error(f"stats zoo/t_{name}"), reason)
        self.end()

    def test_what_is_shown_in_another_form_is_labelled(self):
        self.start(ZOO)
        self.good("step")
        labels = {"shard": r"local shard of \(8, 4\)", "sparse": "sparse", "float32": None}
        if torches.release_of(self.python) >= (2, 1):
            labels["float8_e5m2"] = "float8_e5m2, shown as float32"
        for name, label in labels.items():
            with self.subTest(tensor=name):
                value = self.good(f"info node zoo/t_{name}")["attributes"].get("value")
                if label is None:
                    self.assertIsNone(value)
                else:
                    self.assertRegex(value, label)
        self.end()


@torches.both
class Reasons(Session):
    def test_why_there_is_no_value(self):
        self.start(NET)
        self.good("step")
        reasons = {"net/first/linear": "the script no longer has it; stop right after the operator",
                   "net/seen/linear": "the script no longer has it",
                   "net/add": "it was overwritten in place; stop right after the operator",
                   "net/neg": "it was overwritten in place",
                   "net/unused/weight.grad": r"no backward pass has reached it since zero_grad\(\)",
                   "net/first/weight prev": "previous value"}
        for name, reason in reasons.items():
            with self.subTest(node=name):
                self.assertRegex(self.error("print " + name), reason)
        self.assertEqual(self.good("print net/abs")["shape"], [8, 4])
        self.end()

    def test_right_behind_the_operator_it_is_there(self):
        self.start(NET)
        self.good("step")
        for name in ("net/seen/linear", "net/add", "net/first/linear"):
            self.good("break " + name)
        for name, shape in (("net/first/linear", [8, 4]), ("net/seen/linear", [8, 4]), ("net/add", [8, 4])):
            self.good("continue")
            self.assertEqual(self.good("print " + name)["shape"], shape)
        self.assertRegex(self.error("print net/add:3"), "no slot 3|no output")
        self.end()

    def test_weak_references_are_of_two_steps(self):
        """However many steps are watched."""
        self.start(NET)
        self.good("step")
        self.good("watch TO on net/first/linear")
        self.good("step 4")
        first = self.good("agent memory")["reply"]["referred to"]
        self.good("step 20")
        later = self.good("agent memory")["reply"]["referred to"]
        self.assertEqual(first, later)
        self.assertGreater(later["outputs"], 5)
        self.end()

    def test_other_threads_go_on_while_the_training_stands(self):
        self.start(NET)
        self.good("step")
        count = self.out / "count"

        def number():
            text = count.read_text() if count.exists() else ""
            return int(text) if text else 0
        start = harness.wait_for("the thread's first round", number)
        harness.wait_for("more rounds while the training stands", lambda: number() > start + 20)
        self.end()


@torches.both
class Previous(Session):
    def test_weights_gradients_and_activations_of_the_step_before(self):
        self.start(NET)
        self.good("set keep-previous all")
        self.good("step 3")
        for name in ("net/first/weight", "net/last/bias", "net/first/weight.grad", "net/tanh", "net/first/linear"):
            with self.subTest(node=name):
                before = self.good(f"print {name} prev")
                self.assertEqual(before["step"], 2)
                self.assertGreater(len(before["values"]), 0)
        gradient = np.array(self.good("print net/first/weight.grad prev")["values"], dtype=np.float32)
        self.assertEqual(gradient.tobytes(), (self.out / "first.weight.2").read_bytes())
        now = np.array(self.good("print net/first/weight.grad")["values"], dtype=np.float32)
        self.assertEqual(now.tobytes(), (self.out / "first.weight.3").read_bytes())
        kept = self.good("agent memory")["reply"]["kept for the next step"]
        self.assertEqual([place["device"] for place in kept], ["cpu"])
        self.assertGreater(kept[0]["bytes"], 4 * 16 * 4)
        self.end()

    def test_conditions_against_the_step_before(self):
        self.start(NET)
        self.good("step")
        self.good("watch weight_not_changed on net/unused/weight")
        self.good("watch weight_not_changed on net/first/weight")
        self.good("continue")
        hits = self.good("info hits")["hits"]
        self.assertEqual({(hit["node"], hit["error"]) for hit in hits}, {("net/unused/weight", 0)})
        self.end()


# Every second step takes another path, and each has a copy of the model that is gone at its end.
BRANCHES = """
import copy
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.always, self.odd = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    def forward(self, x, odd):
        x = torch.tanh(self.always(x))
        return torch.sigmoid(self.odd(x)) if odd else x
torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    for parameter in net.parameters():
        parameter.grad = None
    teacher = copy.deepcopy(net)
    with torch.no_grad():
        target = teacher(torch.randn(3, 4), True)
    (net(torch.randn(3, 4), step % 2 == 1) - target).pow(2).mean().backward()
    del teacher
    optimizer.step()
"""


@torches.both
class NotInThisStep(Session):
    def test_what_did_not_run_and_what_is_gone_is_not_judged(self):
        self.start(BRANCHES)
        self.good("trace GM on gradients")
        self.good("trace GM age_ge=2 on gradients")
        self.good("trace 'abs_mean(cur-prev) <= 0' on net/odd/linear, net/sigmoid, net/tanh")
        self.good("trace TL abs_mean_gt=1e6 on all")
        self.good("trace 'age > 0' on net/sigmoid")
        self.good("step")
        self.good("trace TL abs_mean_gt=1e6 on teacher")
        self.good("step 5")
        hits = self.good("info hits")["hits"]
        late = [hit for hit in hits if hit["step"] > 2]
        odd = {"net/odd/weight.grad", "net/odd/bias.grad"}
        self.assertEqual({(hit["watchpoint"], hit["step"], hit["node"]) for hit in late if not hit["error"]},
                         {(1, step, node) for step in (4, 6) for node in odd} |
                         {(5, step, "net/sigmoid") for step in (4, 6)})
        unclear = {(hit["watchpoint"], hit["node"]) for hit in hits if hit["error"] and hit["watchpoint"] in (1, 4, 6)}
        self.assertEqual({node for number, node in unclear if number != 6 and node.startswith("teacher/")}, set())
        self.assertIn((6, "teacher/odd/weight"), unclear)
        self.end()


# Values of 16 MiB, computed by two threads, or by one. Says how many threads the process has before each step.
LARGE = """
import os, sys
import torch
torch.set_num_threads(%d)
weight = torch.nn.Parameter(torch.ones(1 << 22))
optimizer = torch.optim.SGD([weight], lr=0.5)
for step in range(1, 4):
    with open(sys.argv[1] + "/threads", "a") as file:
        print(len(os.listdir("/proc/self/task")), file=file)
    optimizer.zero_grad()
    (weight * 2).sum().backward()
    optimizer.step()
"""


@torches.both
class Large(Session):
    def test_the_programs_threads_share_the_statistics(self):
        if torches.on_device(self):
            self.skipTest("the values are not in host memory")
        for threads, more in ((2, 0), (1, 1)):  # one of libgradb's, where the program has none for it
            with self.subTest(threads=threads):
                self.start(LARGE % threads, GRADB_THREADS="2")
                self.good("step")
                self.good("watch -exact 'max > 1e6' on all")
                self.good("step")
                stats = self.good("stats weight")
                self.assertEqual((stats["step"], stats["stats"]["count"], stats["stats"]["mean"]), (2, 1 << 22, -1))
                self.good("step")
                _, before, after = (int(line) for line in (self.out / "threads").read_text().split())
                self.assertEqual(after - before, more)
                self.end()


@torches.both
class Scaled(Session):
    def setUp(self):
        super().setUp()
        if torches.release_of(self.python) < (2, 3):
            self.skipTest("before 2.3 GradScaler works on CUDA only")

    def test_statistics_and_conditions_are_those_without_the_scale(self):
        self.start(SCALED)
        self.good("step")
        self.good("break net/weight.grad")
        self.good("continue")
        stats = self.good("stats net/weight.grad")["stats"]
        shown = np.array(self.good("print net/weight.grad")["values"], dtype=np.float32)
        self.assertEqual((np.float32(stats["min"]), np.float32(stats["max"])), (shown.min(), shown.max()))
        reply = self.good("agent scale net/weight.grad")["reply"]
        self.assertEqual(reply["scale"], 1024)
        self.assertEqual(reply["without the scale"]["max"], stats["max"])
        self.assertEqual(reply["as it lies there"]["max"], stats["max"] * 1024)
        self.assertRegex(self.good("info node net/weight.grad")["attributes"]["scale"], "^1024 ")
        self.good("delete 1")
        self.good("step")
        self.assertEqual(self.good("agent scale net/weight.grad")["reply"]["scale"], 1)
        limit = 2 * max(stats["max"], -stats["min"])
        self.good(f"watch TL max_gt={limit} on net/weight.grad")
        self.good("step 3")
        self.assertEqual(self.good("info hits")["hits"], [])
        self.end()


@torches.both
class Commands(Session):
    def test_the_program_tells_what_it_offers(self):
        self.start(NET)
        offered = {entry["name"] for entry in self.good("agent")["commands"]}
        self.assertLessEqual({"commands", "memory", "scale"}, offered)
        self.assertRegex(self.error("agent memori"), "has no command 'memori': did you mean memory")
        self.assertIn("\"agent commands\" lists them", self.error("agent nothing-like-it"))
        self.assertRegex(self.error("agent scale net/first/weigh"), "no node .*did you mean net/first/weight")
        self.assertEqual(self.good("agent scale")["reply"], {"scale": 1})
        self.assertIn("memory", self.good("complete agent mem")["lines"][0])
        self.end()

    def test_one_step_of_zeros_stops_nobody_and_many_do(self):
        """The recommended watchpoints: a first state and targets of zeros are meant, and a step may make zeros."""
        self.start("""
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(30):
    optimizer.zero_grad()
    found = net(torch.ones(2, 4)) - torch.zeros(2, 1) + torch.full((2, 1), 0.0)
    ((found * 0 if step == 2 or step > 11 else found) - 5).pow(2).mean().backward()
    optimizer.step()
""")
        self.good("recommend yes")
        self.good("continue")
        hits = [hit for hit in self.good("info hits")["hits"] if not hit["error"]]
        self.assertEqual([(hit["step"], hit["node"]) for hit in hits], [(22, "net/weight.grad")])
        self.end()

    def test_what_is_to_come_is_recommended_before_the_first_step(self):
        self.start(NET)
        offers = {(offer["abbreviation"], offer["where"]) for offer in self.good("recommend")["recommended"]}
        offers = {(condition, where.split(" ")[0]) for condition, where in offers}
        self.assertEqual({("GV", "gradients"), ("AR", "type:tanh"), ("AR", "type:sigmoid"), ("TZ", "type:linear,"),
                          ("TZ", "weights"), ("WCL", "weights"), ("LS", "loss"), ("TO", "all")}, offers)
        self.good("step 2")
        offers = {offer["where"].split(" ")[0] for offer in self.good("recommend")["recommended"]}
        self.assertIn("gradients", offers)
        self.assertNotIn("type:sigmoid", offers)  # there is none
        self.end()


# As if no tensor were in host memory.
ELSEWHERE = """
from gradb.torch import source
parts = []
source.is_here = lambda tensor: False
cut = source.cut
def noted(tensor, items):
    part = cut(tensor, items)
    parts.append(part.numel())
    pathlib.Path(sys.argv[1], "parts").write_text(" ".join(map(str, parts)))
    return part
source.cut = noted
"""


@torches.both
class OnTheDevice(Session):
    """The code path of a CUDA tensor, on the CPU, against libgradb's own statistics."""

    def test_statistics_slices_and_watchpoints(self):
        self.start(NET.replace("net = Net()", ELSEWHERE + "net = Net()"))
        self.good("set keep-previous all")
        self.good("step 2")
        stats = self.good("stats net/first/weight")["stats"]
        piece = self.good("print net/first/weight[1:3, ::-1]")
        whole = np.array(self.good("print net/first/weight")["values"])
        self.assertEqual(piece["values"], whole[1:3, ::-1].tolist())
        self.assertEqual((self.out / "parts").read_text(), "8")
        self.assertEqual((stats["count"], stats["positive"]), (16, int((whole > 0).sum())))
        self.assertAlmostEqual(stats["mean"], whole.mean(), places=6)
        self.assertAlmostEqual(stats["std"], whole.std(), places=6)
        self.assertRegex(self.error("print net/first/weight[9]"), "9")
        self.good("watch weight_not_changed on net/unused/weight")
        self.good("watch TL max_gt=1e9 on net/first/linear")
        self.good("watch TZ zero_percentage_ge=1 on net/abs")
        self.good("step")
        hits = self.good("info hits")["hits"]
        self.assertEqual({(hit["node"], hit["error"]) for hit in hits}, {("net/unused/weight", 0)})
        self.end()

    def test_statistics_and_copies(self):
        if not STATS_LIBRARY.exists():
            self.skipTest("libstats_of.so is not built here")
        done = subprocess.run([*torches.warm(self.python), str(harness.SOURCE / "tests" / "device" / "statistics_check.py"),
                               "--device", "cpu", "--library", str(STATS_LIBRARY)], env=torches.environment(), text=True,
                              capture_output=True, timeout=4 * harness.DEADLINE, check=False)
        failed = [line for line in done.stdout.splitlines() if "FAILED" in line]
        self.assertEqual((failed, done.returncode), ([], 0), done.stderr)
        self.assertGreater(done.stdout.count(" ok\n"), 25)


# The names of torch that gradb's package uses and that this PyTorch lacks; the answer for a call that is too large to
# be repeated.
USED = """
import ast, importlib, pathlib, sys
import torch
sys.path.insert(0, sys.argv[1])

def chain(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *parts[::-1]] if isinstance(node, ast.Name) else [""]

def lacks(names):
    thing = torch
    for i, name in enumerate(names[1:], 2):
        try:
            thing = getattr(thing, name) if hasattr(thing, name) else importlib.import_module(".".join(names[:i]))
        except ImportError:
            return True
    return False

used = set()
for path in pathlib.Path(sys.argv[1], "gradb", "torch").glob("*.py"):
    nodes = ast.walk(ast.parse(path.read_text()))
    used |= {(path.name, *chain(node)) for node in nodes if isinstance(node, ast.Attribute)}
used = [name for name in used if name[1] == "torch"]
print("used", len(used) > 100)
for name in sorted({".".join(name[1:]) for name in used if lacks(name[1:])}):
    print("lacks", name)

from gradb.torch import replay
class Call:
    refused = ""
    given = None
    about = {"function": "torch.exp"}
    arguments = {"args": [{"type": "torch.Tensor", "shape": [1 << 24, 1 << 20]}], "kwargs": {}}
    results = [{"type": "torch.Tensor", "shape": [1 << 24, 1 << 20]}, None]
    is_held = staticmethod(lambda: True)
print(replay._judge(Call())["text"])
"""


# Copies to the host without a device: tensors that claim to be on one, and streams that record what is asked of them.
# Memory is allocated where it is meant, whatever the program's default device is.
STAGED = """
import contextlib, sys
sys.path.insert(0, sys.argv[1])
import torch
from gradb.torch import device_stats

class There(torch.Tensor):
    device = property(lambda self: torch.device("cuda", 0))

asked = []
class Stream:
    def __init__(self, device):
        asked.append("stream on %s" % device)
    def wait_stream(self, other):
        asked.append("waits for " + other)
    def synchronize(self):
        asked.append("is waited for")

@contextlib.contextmanager
def inside(stream):
    asked.append("copies")
    yield

empty = torch.empty
def staged(*args, **kwargs):
    assert kwargs.pop("device") == "cpu"
    kwargs.pop("pin_memory", None)
    return empty(*args, device="cpu", **kwargs)

torch.cuda.Stream, torch.cuda.stream, torch.empty = Stream, inside, staged
torch.cuda.current_stream = lambda device: "the one of %s" % device
device_stats._STAGING = 64
plain = torch.arange(60.0).reshape(6, 10).t()
there = plain.as_subclass(There)
copy = device_stats.to_host(there)
one = ["waits for the one of cuda:0", "copies", "is waited for"]
print(type(copy) is torch.Tensor, torch.equal(copy, plain), copy.is_contiguous(), asked[0])
print(asked[1:] == one * ((len(asked) - 1) // 3), len(asked) > 10)
print(device_stats.to_host(there[0, 0]).item(), tuple(device_stats.to_host(there[:0]).shape))
print(device_stats.compute(there) == device_stats.compute(plain))
"""


@torches.both
class Staged(torches.Folder):
    def test_copies_to_the_host(self):
        done = subprocess.run([*torches.warm(self.python), self.write("staged.py", STAGED), str(torches.PACKAGE)],
                              capture_output=True, text=True, check=False, timeout=harness.DEADLINE,
                              env=torches.environment(GRADB_DISABLE="1"))
        self.assertEqual(done.stdout, "True True True stream on cuda:0\nTrue True\n0.0 (0, 6)\nTrue\n", done.stderr)


@torches.both
class Used(torches.Folder):
    def test_every_name_is_there_or_asked_for_first(self):
        done = subprocess.run([*torches.warm(self.python), self.write("used.py", USED), str(torches.PACKAGE)],
                              capture_output=True, text=True, check=False, timeout=harness.DEADLINE,
                              env=torches.environment(GRADB_DISABLE="1"))
        lines = done.stdout.splitlines()
        release = torches.release_of(self.python)
        later = {"torch.amp.GradScaler": (2, 3), "torch.compile": (2, 0), "torch.get_autocast_dtype": (2, 4),
                 "torch._C._get_privateuse1_backend_name": (2, 0), "torch.utils.weakref": (2, 3)}
        expected = [name for name, came in later.items() if release < came]
        expected += ["torch._C._set_torch_function_mode"] if release >= (2, 0) else []
        self.assertEqual(lines[:-1], ["used True"] + ["lacks " + name for name in sorted(expected)], done.stderr)
        self.assertRegex(lines[-1], r"^it cannot be repeated: in float64 it needs up to 7.86e\+05 GiB, but only \S+ GiB of")


if __name__ == "__main__":
    harness.main()
