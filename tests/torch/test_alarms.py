# SPDX-License-Identifier: GPL-3.0-or-later
"""The recommended watchpoints on trainings: healthy ones run to their end, faulty ones stop.

The programs are what people write, and each healthy one contains something that would be wrong elsewhere: masks of
-inf, layers that begin at 0, gradients that are 0 by algebra, batches that teach nothing."""
import re
import subprocess

import harness
import torches

HEAD = """import copy, math
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
"""
UPDATE = """\
    opt.zero_grad()
    loss.backward()
    opt.step()
"""  # the end of a training loop
HEALTHY = {
    "transformer_triu": """
V, T = 24, 16
class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(V, 32)
        s.p = nn.Embedding(T, 32)
        s.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True), 2)
        s.o = nn.Linear(32, V)
    def forward(s, x):
        m = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), diagonal=1)
        return s.o(s.t(s.e(x) + s.p(torch.arange(x.shape[1])), mask=m))
model = M()
opt = torch.optim.AdamW(model.parameters(), 1e-3)
data = (torch.arange(3000) ** 2) % V
for step in range(40):
    b = torch.stack([data[s:s + T + 1] for s in torch.randint(0, 2900, (8,))])
    loss = F.cross_entropy(model(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten())
""" + UPDATE,
    "gru_default_state": """
class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.r = nn.GRU(4, 24, num_layers=2, dropout=0.1)
        s.o = nn.Linear(24, 1)
    def forward(s, x): return s.o(s.r(x)[0][-1])
model = M()
opt = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(50):
    x = torch.randn(12, 16, 4)
    y = x.sum((0, 2)).unsqueeze(1) / 4
    loss = F.mse_loss(model(x), y)
""" + UPDATE,
    "lora": """
class L(nn.Module):
    def __init__(s, i, o, r=4):
        super().__init__()
        s.w = nn.Linear(i, o)
        s.w.requires_grad_(False)
        s.A = nn.Parameter(torch.randn(r, i) * 0.02)
        s.B = nn.Parameter(torch.zeros(o, r))
    def forward(s, x): return s.w(x) + (x @ s.A.t()) @ s.B.t()
model = nn.Sequential(L(16, 32), nn.ReLU(), L(32, 4))
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-2)
for step in range(50):
    x = torch.randn(32, 16)
    y = x[:, :4].argmax(1)
    loss = F.cross_entropy(model(x), y)
""" + UPDATE,
    "resnet_like": """
class B(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.a = nn.Conv2d(c, c, 3, padding=1, bias=False)
        s.n = nn.BatchNorm2d(c)
        s.b = nn.Conv2d(c, c, 3, padding=1, bias=False)
        s.m = nn.BatchNorm2d(c)
        nn.init.zeros_(s.m.weight)
    def forward(s, x): return F.relu(x + s.m(s.b(F.relu(s.n(s.a(x))))))
model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), B(8), B(8),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [15])
for step in range(25):
    x = torch.randn(16, 3, 10, 10)
    y = torch.randint(0, 4, (16,))
    x += y[:, None, None, None] * 0.5
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
""",
    "where_inf_attention": """
q, k, v, o = [nn.Linear(16, 16) for _ in range(4)]
opt = torch.optim.AdamW([p for m in (q, k, v, o) for p in m.parameters()], 1e-3)
for step in range(40):
    x = torch.randn(8, 10, 16)
    m = torch.arange(10)[None] < torch.randint(4, 11, (8, 1))
    s = q(x) @ k(x).transpose(1, 2) / 4
    s = torch.where(m[:, None], s, torch.tensor(float("-inf")))
    y = o(s.softmax(-1) @ v(x))
    loss = F.mse_loss(y[m], x[m].roll(1, 1))
""" + UPDATE,
    "simclr": """
f = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(f.parameters(), 1e-3)
for step in range(40):
    x = torch.randn(32, 16)
    z = F.normalize(torch.cat([f(x + 0.1 * torch.randn_like(x)), f(x + 0.1 * torch.randn_like(x))]), dim=1)
    s = z @ z.t() / 0.2
    s.fill_diagonal_(float("-inf"))
    y = torch.cat([torch.arange(32, 64), torch.arange(32)])
    loss = F.cross_entropy(s, y)
""" + UPDATE,
    "wgan_gp": """
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
og = torch.optim.Adam(G.parameters(), 1e-4, (0.0, 0.9))
od = torch.optim.Adam(D.parameters(), 1e-4, (0.0, 0.9))
for step in range(20):
    for k in range(3):
        x = torch.randn(32, 2) * 0.5 + 1
        f = G(torch.randn(32, 4)).detach()
        e = torch.rand(32, 1)
        m = (e * x + (1 - e) * f).requires_grad_()
        g = torch.autograd.grad(D(m).sum(), m, create_graph=True)[0]
        l = D(f).mean() - D(x).mean() + 10 * ((g.norm(2, 1) - 1) ** 2).mean()
        od.zero_grad()
        l.backward()
        od.step()
    l = -D(G(torch.randn(32, 4))).mean()
    og.zero_grad()
    l.backward()
    og.step()
""",
    "lbfgs": """
x = torch.linspace(-1, 1, 50)[:, None]
y = x ** 3
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
for step in range(15):
    def closure():
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss
    opt.step(closure)
""",
    "hinge_svm": """
w = nn.Linear(6, 1)
opt = torch.optim.SGD(w.parameters(), 0.05)
for step in range(100):
    x = torch.randn(16, 6)
    x[:, 0] += 2 * x[:, 0].sign()
    y = x[:, 0].sign()
    loss = F.relu(1 - y * w(x)[:, 0]).mean() + 1e-3 * w.weight.pow(2).sum()
""" + UPDATE,
    "moe": """
class MoE(nn.Module):
    def __init__(s):
        super().__init__()
        s.g = nn.Linear(8, 4)
        s.e = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(4))
    def forward(s, x):
        w, k = s.g(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for i, e in enumerate(s.e):
            r, c = (k == i).nonzero(as_tuple=True)
            if len(r): out.index_add_(0, r, e(x[r]) * w[r, c, None])
        return out
model = MoE()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(40):
    x = torch.randn(16, 8)
    loss = F.mse_loss(model(x), x.flip(1))
""" + UPDATE,
    "logistic_zero_init": """
x = torch.randn(200, 10)
y = (x[:, 0] > 0).float()
w = torch.zeros(10, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
opt = torch.optim.SGD([w, b], 0.5)
for step in range(60):
    loss = F.binary_cross_entropy_with_logits(x @ w + b, y)
""" + UPDATE,
    "autoencoder_tied": """
W = nn.Parameter(torch.randn(8, 20) * 0.1)
b = nn.Parameter(torch.zeros(8))
c = nn.Parameter(torch.zeros(20))
opt = torch.optim.SGD([W, b, c], 0.1)
data = torch.randn(256, 4) @ torch.randn(4, 20)
for step in range(60):
    x = data[torch.randint(0, 256, (32,))]
    loss = F.mse_loss(torch.sigmoid(x @ W.t() + b) @ W + c, x)
""" + UPDATE,
}
FAULTY = {
    "dead_relu": """
m = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(m.parameters(), 1e-3)
with torch.no_grad(): m[2].bias.fill_(-20.)
for step in range(40):
    x = torch.randn(32, 8)
    loss = F.mse_loss(m(x)[:, 0], x.sum(1))
""" + UPDATE,
    "all_zero_init": """
m = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
for p in m.parameters(): nn.init.zeros_(p)
opt = torch.optim.SGD(m.parameters(), 0.1)
for step in range(40):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(m(x), x[:, :4].argmax(1))
""" + UPDATE,
    "masked_row_softmax": """
m = nn.Linear(4, 6)
opt = torch.optim.SGD(m.parameters(), 0.1)
for step in range(30):
    x = torch.randn(16, 4)
    k = torch.rand(16, 6) < (0.5 if step < 3 else 0.95)
    loss = m(x).masked_fill(k, float("-inf")).softmax(-1).pow(2).mean()
""" + UPDATE,
    "lr_huge_adam": """
m = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.AdamW(m.parameters(), 3.0)
for step in range(40):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(m(x), x[:, :4].argmax(1))
""" + UPDATE,
    "vanish_sigmoid": """
m = nn.Sequential(nn.Linear(8, 16), *[z for _ in range(24) for z in (nn.Sigmoid(), nn.Linear(16, 16))],
                  nn.Sigmoid(), nn.Linear(16, 1))
opt = torch.optim.SGD(m.parameters(), 0.1)
for step in range(40):
    x = torch.randn(32, 8)
    loss = F.mse_loss(m(x)[:, 0], x.sum(1))
""" + UPDATE,
}
MASK = """
q = nn.Linear(16, 16)
opt = torch.optim.AdamW(q.parameters(), 1e-3)
bias = torch.zeros(10, 10)
bias[torch.ones(10, 10).triu(1).bool()] = float("-inf")
for step in range(12):
    x = torch.randn(8, 10, 16)
    m = bias
    y = (q(x) @ x.transpose(1, 2) + m).softmax(-1) @ x
    loss = F.mse_loss(y, x)
""" + UPDATE
# A loss that goes from 4.4 to 135.
LR_3 = """
V = 80
class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.e, s.r, s.o = nn.Embedding(V, 32), nn.Linear(32, 64), nn.Linear(64, V)
    def forward(s, x): return s.o(F.relu(s.r(s.e(x))))
model = M()
opt = torch.optim.AdamW(model.parameters(), 3.0)
data = (torch.arange(3000) ** 2) % V
for step in range(30):
    i = torch.randint(0, 2900, (64,))
    loss = F.cross_entropy(model(data[i]), data[i + 1])
""" + UPDATE
STOPS = {"dead_relu": r"m/3/relu:0 zero_percentage", "all_zero_init": r"m/0/weight:0 zero_percentage",
         "masked_row_softmax": r"softmax:0", "lr_huge_adam": r"loss rise_gt=10",
         "vanish_sigmoid": r"weight\.grad:0 abs_mean_lt"}


class Alarms(torches.Folder):
    def run_of(self, name, text, *commands):
        done = self.gradb([self.python, self.write(name + ".py", HEAD + text)], *commands)
        return done.returncode, done.stdout + done.stderr


@torches.newest
class Recommended(Alarms):
    def test_healthy_ones_run_to_their_end(self):
        for name, text in HEALTHY.items():
            with self.subTest(name):
                status, said = self.run_of(name, text, "recommend yes", "continue")
                self.assertIn("The training ended.", said)
                self.assertEqual(status, 0, said)

    def test_faulty_ones_stop(self):
        for name, text in FAULTY.items():
            with self.subTest(name):
                status, said = self.run_of(name, text, "recommend yes", "continue")
                self.assertEqual(status, 4, said)
                self.assertRegex(said, STOPS[name])

    def test_a_loss_that_is_nearly_0_does_not_spike(self):
        status, said = self.run_of("hinge_svm", HEALTHY["hinge_svm"], "catch loss-spike", "continue")
        self.assertEqual(status, 0, said)
        status, said = self.run_of("lr_3", LR_3, "catch loss-spike", "continue", "info log")
        self.assertEqual(status, 4, said)
        self.assertRegex(said, r"Catchpoint 1: loss-spike, step \d+")

    def test_a_mask_that_was_made_before_anybody_looked(self):
        for where in ("", "    m = bias.clone()\n", "    m = bias.tril().triu(-20)[None]\n"):
            status, said = self.run_of("mask", MASK.replace("    m = bias\n", where or "    m = bias\n"), "step 1",
                                       "watch TO on all", "continue")
            self.assertEqual(status, 0, said)
        status, said = self.run_of("mask", MASK.replace("+ m)", "+ m + 1e30 * (1e30 * x[..., :10]))"), "step 1",
                                   "watch TO on all", "continue")
        self.assertEqual(status, 4, said)

    def test_what_was_hidden_is_said(self):
        _, said = self.run_of("masks", HEALTHY["transformer_triu"], "watch TO on all", "continue", "info hits",
                              "info watchpoints")
        self.assertEqual(len(re.findall(r"hid \d+ values of \d tensors: intentional, e\.g\. masks", said)), 2, said)


@torches.newest
class Parameters(Alarms):
    def test_a_parameter_does_not_run(self):
        why = "m/weight is a parameter, which does not run: m/linear reads it, optimizer/SGD/m/weight updates it"
        for command in ("run-to m/weight", "break m/weight"):
            status, said = self.run_of("runs", PLAIN, "step 2", command)
            self.assertEqual(status, 1)
            self.assertIn(why, said)


PLAIN = """
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
for step in range(4):
    loss = m(torch.randn(8, 4)).pow(2).mean()
""" + UPDATE

BROKEN = """
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient")
m = nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
Broken.apply(m(torch.randn(8, 4))).sum().backward()
"""


@torches.both
class Raised(Alarms):
    def test_an_error_in_a_backward_pass_has_its_line(self):
        for commands in (("catch exception", "continue"), ("continue",)):
            _, said = self.run_of("broken", BROKEN, *commands)
            self.assertIn("ValueError: no gradient (broken.py:12 in backward)", said)


# What PyTorch warns about: functions in C and in Python, a module, a scheduler, a loss, a view, a property.
WARNS = """
import warnings
warnings.simplefilter("always")
m = nn.Sequential(nn.Linear(4, 4), nn.Softmax()); opt = torch.optim.SGD(m.parameters(), 0.1)
sch = torch.optim.lr_scheduler.StepLR(opt, 2)
emb = nn.Parameter(torch.randn(4, 4))
for step in range(3):
    x = torch.randn(8, 4)
    h = m(x)
    s = F.softmax(h)
    t = F.tanh(h); u = F.sigmoid(h)
    l = F.mse_loss(h, torch.randn(1, 4))
    y = x[torch.ones(8, dtype=torch.uint8)]
    z = torch.randn(3, 4, 5).T
    w = F.kl_div(s.log(), s)
    n = F.upsample(x[None, None], scale_factor=2)
    b = F.interpolate(x[None, None], scale_factor=2.5, mode="bilinear")
    q = torch.empty(5); torch.add(x[:4, :4], x[4:, :4], out=q)
    d = F.dropout2d(torch.randn(4, 4))
    e = torch.nn.functional.l1_loss(h, h, size_average=True)
    g = torch.meshgrid(torch.arange(2), torch.arange(2))
    c = torch.tensor(x)
    loss = (h + t + u + s).sum() + l
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm(m.parameters(), 1.0)
    if step == 0: sch.step()
    opt.step()
    sch.step(step)
    h.grad
"""
WARNED = re.compile(r"^(/\S*:\d+): (\w+Warning)", re.MULTILINE)


@torches.both
class Warned(Alarms):
    """PyTorch's own warnings name the same line as without gradb."""

    def lines_of(self, program, **env):
        done = subprocess.run(program, capture_output=True, text=True, env=torches.environment(**env), check=True,
                              timeout=4 * harness.DEADLINE)
        return sorted(WARNED.findall(done.stderr))

    def check(self, text):
        """Returns the lines without gradb, which are those with it."""
        script = self.write("warns.py", text)
        alone = self.lines_of([self.python, str(script)])
        for native in ("1", "0"):
            said = self.folder / ("said" + native)
            done = self.gradb(["sh", "-c", f"exec {self.python} {script} 2> {said}"], "trace TO on all", "continue",
                              GRADB_NATIVE=native)
            self.assertIn("The training ended.", done.stdout)
            self.assertEqual(sorted(WARNED.findall(said.read_text())), alone)
        return alone

    def test_warnings_keep_their_line(self):
        alone = self.check(HEAD + WARNS)
        own = [place for place, _ in alone if "warns.py" in place]
        self.assertGreater(len(alone if torches.on_device(self) else own), 20)

    def test_so_they_do_with_a_default_device(self):
        """PyTorch calls that from the place that it calls gradb from."""
        if torches.release_of(self.python) < (2, 0):
            self.skipTest("default devices came with 2.0")
        alone = self.check(HEAD + "torch.set_default_device('cpu')" + WARNS)
        self.assertTrue([place for place, _ in alone if "_device.py" in place], alone)


MOVES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.heads = {"a": nn.Linear(4, 1)}
        self.scale = [nn.Parameter(torch.ones(4))]
    def forward(self, x):
        x = self.fc(x)
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](x * self.scale[0])
model = Net()
loose = [p for layer in model.layers for p in layer.parameters()]
opt = torch.optim.SGD([*model.parameters(), *loose, *model.heads["a"].parameters(), *model.scale], 0.1)
for step in range(6):
    if step == 3:
        model.fc = nn.Linear(4, 4, bias=False)
        with torch.no_grad():
            model.fc.weight.fill_(0.625)
            model.layers[0] = nn.Linear(4, 4)
            model.layers[0].weight.fill_(0.875)
            model.scale[0] = nn.Parameter(torch.full((4,), 1.5))
        opt.add_param_group({"params": model.fc.parameters(), "lr": 0.0})
    loss = model(torch.randn(8, 4)).pow(2).mean()
""" + UPDATE


@torches.newest
class Names(Alarms):
    def test_a_parameter_has_the_name_that_the_program_reaches_it_by(self):
        _, said = self.run_of("moves", MOVES, "watch TO on all", "step 5", "search type:Parameter", "print model/fc/weight")
        for name in ("model/layers/0/weight", "model/layers/1/bias", "model/heads/a/weight", "model/scale/0"):
            self.assertRegex(said, rf"\b{name}\b")
        self.assertNotRegex(said, r"\bparameter_?\d*$")
        self.assertIn("0.625", said.split("model/fc/weight")[-1])

    def test_a_value_is_that_of_what_is_in_the_place_now(self):
        """Also in steps whose operators nobody watched."""
        _, said = self.run_of("moves", MOVES, "step 4", "print model/fc/weight", "print model/fc/weight.grad",
                              "print model/layers/0/weight", "print model/scale/0", "agent training model/fc/weight",
                              "why model/layers/0/weight", "print model/fc/bias")
        shown = dict(re.findall(r"\$\d+ = (\S+):0\n(.*)", said))
        self.assertIn("min=0.625 max=0.625", shown["model/fc/weight"])
        self.assertRegex(shown["model/fc/weight.grad"], "n=16")
        self.assertIn("min=0.875 max=0.875", shown["model/layers/0/weight"])
        self.assertIn("min=1.5 max=1.5", shown["model/scale/0"])
        self.assertRegex(said, r"parameter +model/fc/weight\n")
        self.assertIn("Nothing updates model/layers/0/weight: no optimizer holds it", " ".join(said.split()))
        self.assertIn("error: the script no longer has this tensor", said)


if __name__ == "__main__":
    harness.main()
