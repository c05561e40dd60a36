# SPDX-License-Identifier: GPL-3.0-or-later
"""Small trainings that each use another part of PyTorch: uses.py NAME FILE trains NAME, and writes to FILE what was
computed, to the last bit, and what the program can see of PyTorch's state. Without arguments: prints the names."""
import copy
import gc
import hashlib
import io
import multiprocessing
import os
import pickle
import random
import sys
import threading
import warnings
import weakref

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

USES = {}
SEEN = []  # what is written


def use(function):
    USES[function.__name__] = function
    return function


def saw(*what):
    SEEN.append(repr(what))


def digest(*tensors):
    """Notes type, shape and the bits of tensors."""
    for tensor in tensors:
        tensor = tensor.detach()
        dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
        bits = torch.view_as_real(dense) if dense.is_complex() else dense.double()
        saw(str(tensor.dtype), tuple(tensor.shape), hashlib.sha256(repr(bits.flatten().tolist()).encode()).hexdigest())


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def adam(model):
    return torch.optim.AdamW(model.parameters(), 0.01)


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


def batch(rows=8, width=4):
    return torch.randn(rows, width)


def small(values):
    return values.square().mean()


def descend(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(model, optimizer, steps=5, loss_of=lambda model, x: small(model(x))):
    for _ in range(steps):
        loss = loss_of(model, batch(16))
        descend(optimizer, loss)
    digest(loss, *model.parameters())


# Objects that are copied, saved and converted


@use
def save_whole():
    model = mlp()
    optimizer = adam(model)
    train(model, optimizer, 3)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    again = adam(loaded)
    again.load_state_dict(optimizer.state_dict())
    train(loaded, again, 3)


@use
def copies():
    model = mlp()
    optimizer = adam(model)
    train(model, optimizer, 3)
    train(*copy.deepcopy((model, optimizer)), 3)
    train(model, optimizer, 3)


@use
def pickled():
    model = mlp()
    optimizer = sgd(model)
    train(model, optimizer, 2)
    optimizer = pickle.loads(pickle.dumps(optimizer))
    saw(type(optimizer).__name__, len(optimizer.param_groups))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    saw(sorted(pickle.loads(pickle.dumps(schedule.state_dict()))))


@use
def scripted():
    model = mlp()
    optimizer = adam(model)
    train(model, optimizer, 3)
    traced = torch.jit.trace(model, batch(2))
    script = torch.jit.script(model)
    digest(traced(torch.ones(2, 4)), script(torch.ones(2, 4)))
    train(model, optimizer, 3)


@use
def symbolic():
    model = mlp()
    train(model, adam(model), 2)
    graph = torch.fx.symbolic_trace(model)
    saw(graph.code)
    train(graph, adam(graph), 3)


@use
def exported():
    model = mlp()
    optimizer = adam(model)
    train(model, optimizer, 2)
    saw(len(torch.export.export(model, (batch(2),)).graph.nodes))
    train(model, optimizer, 2)


@use
def flat():
    model = mlp()
    optimizer = adam(model)
    train(model, optimizer, 2)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector * 0.9, model.parameters())
    train(model, optimizer, 3)
    digest(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))


@use
def data_replaced():
    model = mlp()
    optimizer = sgd(model)
    for step in range(5):
        loss = small(model(batch()))
        optimizer.zero_grad(set_to_none=bool(step % 2))
        loss.backward()
        optimizer.step()
        model[0].weight.data = model[0].weight.data.clone() * 0.99
        model[2].bias = optimizer.param_groups[0]["params"][3] = nn.Parameter(model[2].bias.detach().clone())
    digest(*model.parameters())


# Modules


@use
def parametrized():
    model = mlp()
    parametrizations.weight_norm(model[0])
    parametrizations.spectral_norm(model[2])
    train(model, adam(model), 5)
    parametrize.remove_parametrizations(model[0], "weight")
    train(model, adam(model), 3)


@use
def pruned():
    model = mlp()
    prune.l1_unstructured(model[0], "weight", 0.3)
    train(model, adam(model), 4)
    prune.remove(model[0], "weight")
    train(model, adam(model), 3)


@use
def lazy():
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
    model(torch.zeros(1, 4))
    train(model, adam(model), 4)


@use
def from_meta():
    with torch.device("meta"):
        model = mlp()
    model = model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    train(model, adam(model), 3)


@use
def averaged():
    model = mlp()
    optimizer = sgd(model)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    schedule = torch.optim.swa_utils.SWALR(optimizer, 0.01)
    for _ in range(5):
        descend(optimizer, small(model(batch())))
        average.update_parameters(model)
        schedule.step()
    digest(*average.parameters(), *model.parameters())


@use
def hooks():
    model = mlp()
    calls = []
    model[0].register_forward_hook(lambda module, inputs, output: calls.append("forward"))
    model[0].register_full_backward_hook(lambda module, inputs, outputs: calls.append("backward"))
    model.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 1.5,))
    model[2].weight.register_hook(lambda gradient: gradient * 0.5)
    train(model, adam(model), 5)
    saw(calls)


@use
def recurrent():
    model, head, state = nn.LSTM(4, 8, 2, batch_first=True, dropout=0.1), nn.Linear(8, 1), None
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], 0.01)
    for _ in range(5):
        y, state = model(torch.randn(4, 6, 4), state)
        state = tuple(part.detach() for part in state)
        descend(optimizer, small(head(y)))
    digest(*model.parameters())


@use
def attention():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    optimizer = adam(model)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    for _ in range(4):
        descend(optimizer, small(model(torch.randn(2, 5, 8), src_mask=mask)))
    model.eval()
    with torch.no_grad():
        digest(model(torch.ones(2, 5, 8)), *model.parameters())


@use
def data_parallel():
    model = nn.DataParallel(mlp())
    train(model, adam(model), 4)


# Transforms of torch.func, and gradients of gradients


@use
def mapped():
    model = mlp()

    def loss_of(model, x):
        def one(parameters, row):
            return small(torch.func.functional_call(model, parameters, (row,)))
        slopes = torch.func.vmap(torch.func.grad(one), (None, 0))(dict(model.named_parameters()), x)
        return small(model(x)) + 0.01 * sum(map(small, slopes.values()))
    train(model, adam(model), 4, loss_of)


@use
def ensemble():
    models = [mlp() for _ in range(3)]
    stacked, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    parameters = {name: value.detach().requires_grad_() for name, value in stacked.items()}
    optimizer = torch.optim.Adam(parameters.values(), 0.01)

    def one(mine, buffers, x):
        return torch.func.functional_call(base, (mine, buffers), (x,))
    for _ in range(4):
        descend(optimizer, small(torch.vmap(one, (0, 0, None))(parameters, buffers, batch())))
    digest(*parameters.values())


@use
def hessian():
    model = mlp()

    def loss_of(model, x):
        curves = torch.autograd.functional.hessian(lambda part: small(model(part)), x[:2], create_graph=True)
        return small(curves) + small(model(x))
    train(model, adam(model), 3, loss_of)


@use
def penalty():
    model = mlp()

    def loss_of(model, x):
        slope, = torch.autograd.grad(model(x.requires_grad_()).sum(), x, create_graph=True)
        return small(slope.norm(dim=1) - 1)
    train(model, adam(model), 5, loss_of)


@use
def checked():
    model = mlp().double()
    saw(torch.autograd.gradcheck(model, torch.randn(2, 4, dtype=torch.double, requires_grad=True)))
    torch.set_default_dtype(torch.double)
    train(model, adam(model), 3)


# Autograd


@use
def checkpointed():
    def loss_of(model, x):
        x = torch.utils.checkpoint.checkpoint(model[0], x, use_reentrant=False)
        return small(model[2](torch.utils.checkpoint.checkpoint(model[1], x, use_reentrant=True)))
    model = mlp()
    train(model, adam(model), 5, loss_of)


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return (x > 0).float() * scale

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * (x.abs() < 1).float() * ctx.scale, None


@use
def own_function():
    model = mlp()
    train(model, adam(model), 5, lambda model, x: small(model[2](Gate.apply(model[0](x), 2.0))))


@use
def saved_tensors():
    def loss_of(model, x):
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved):
            y = model(x)
        with torch.autograd.graph.save_on_cpu():
            return small(y * y.sigmoid())
    model = mlp()
    train(model, adam(model), 4, loss_of)


@use
def anomalies():
    model = mlp()
    with torch.autograd.set_detect_anomaly(True):
        train(model, adam(model), 4)


@use
def inference():
    model = mlp()
    optimizer = adam(model)
    for _ in range(4):
        with torch.inference_mode():
            evaluated = model(batch(4)) + 1
        descend(optimizer, small(model(batch())))
    digest(evaluated, *model.parameters())


@use
def mixed_precision():
    model = mlp()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu")
    for _ in range(5):
        with torch.autocast("cpu", torch.bfloat16):
            loss = small(model(batch()))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    digest(*model.parameters())


@use
def exceptions():
    model = mlp()
    optimizer = adam(model)

    def refused(function, *arguments):
        try:
            function(*arguments)
        except RuntimeError as error:
            saw(str(error))
    for _ in range(5):
        refused(model, batch(3, 5))
        refused(torch.ones(2).backward)
        loss = small(model(batch()))
        descend(optimizer, loss)
        refused(loss.backward)
    digest(*model.parameters())


# Optimizers


@use
def all_optimizers():
    for options in ({"foreach": True}, {"fused": True}, {"foreach": False}, {"amsgrad": True}):
        model = mlp()
        train(model, torch.optim.AdamW(model.parameters(), 0.01, **options), 4)
    for name in ("Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam", "Rprop", "ASGD", "Adamax"):
        model = mlp()
        train(model, getattr(torch.optim, name)(model.parameters(), lr=0.01), 3)


@use
def with_closure():
    model, x = mlp(), batch(16)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = small(model(x))
        loss.backward()
        return loss
    for _ in range(4):
        loss = optimizer.step(closure)
    digest(loss, *model.parameters())


@use
def step_in_backward():
    model = mlp()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.05) for parameter in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(5):
        small(model(batch())).backward()
    digest(*model.parameters())


@use
def two_optimizers():
    teacher, student = mlp(), mlp()
    first, second = adam(teacher), sgd(student)
    for _ in range(5):
        x = batch()
        descend(first, small(teacher(x)))
        descend(second, small(student(x) - teacher(x).detach()))
    digest(*teacher.parameters(), *student.parameters())


# Kinds of tensors


@use
def sparse():
    table, head = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2)
    optimizers = torch.optim.SparseAdam(table.parameters(), 0.01), adam(head)
    for _ in range(5):
        loss = small(head(table(torch.randint(0, 20, (6,)))))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    digest(table.weight, *head.parameters())


@use
def complex_numbers():
    weight = nn.Parameter(torch.randn(4, 4, dtype=torch.cfloat))
    optimizer = torch.optim.Adam([weight], 0.01)
    for _ in range(5):
        y = torch.randn(3, 4, dtype=torch.cfloat) @ weight
        descend(optimizer, small(y.abs()) + torch.fft.fft(weight.real).abs().mean())
    digest(weight)


@use
def jagged():
    model = mlp()
    optimizer = adam(model)
    for _ in range(4):
        rows = torch.nested.nested_tensor([batch(count) for count in (2, 3)], layout=torch.jagged)
        descend(optimizer, small(model(rows).values()))
    digest(*model.parameters())


@use
def masked():
    model = mlp()
    optimizer = adam(model)
    for _ in range(4):
        y = model(batch())
        some = torch.masked.masked_tensor(y, y.detach() > -1)
        digest(some.sum().get_data())
        descend(optimizer, small(y))
    digest(*model.parameters())


class Marked(torch.Tensor):
    pass


class Weight(nn.Parameter):
    pass


@use
def subclasses():
    model = mlp()
    model[0].weight = Weight(model[0].weight.detach())
    train(model, adam(model), 5, lambda model, x: small(model(x.as_subclass(Marked))))


# What surrounds the training


class Counts(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        saw(getattr(function, "__name__", "?"))
        return function(*args, **(kwargs or {}))


@use
def own_mode():
    model = mlp()
    optimizer = adam(model)
    for _ in range(4):
        with Counts():
            descend(optimizer, small(model(batch())))
    digest(*model.parameters())


@use
def compiled():
    model = mlp()
    train(torch.compile(model, backend="eager"), adam(model), 5)
    model = mlp()
    model.compile(backend="aot_eager")
    train(model, adam(model), 4)


@use
def loss_compiled():
    model = mlp()
    optimizer = adam(model)
    loss_of = torch.compile(lambda x: small(model(x)), backend="eager")
    for _ in range(5):
        descend(optimizer, loss_of(batch()))
    digest(*model.parameters())


@use
def reference_counts():
    model = mlp()
    optimizer = adam(model)
    for _ in range(5):
        hidden = model[0](batch())
        loss = small(model[2](model[1](hidden)))
        descend(optimizer, loss)
        gradients = [parameter.grad for parameter in model.parameters()]
        tensors = [hidden, loss, *gradients, *model.parameters()]
        saw([sys.getrefcount(tensor) for tensor in tensors], [tensor._use_count() for tensor in tensors])


@use
def lifetimes():
    model = mlp()
    optimizer = adam(model)
    for _ in range(5):
        hidden = model[0](batch())
        reference = weakref.ref(hidden)
        descend(optimizer, small(model[2](model[1](hidden))))
        del hidden
        saw(reference() is None, gc.isenabled())


@use
def generators():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    train(model, adam(model), 5)
    saw(torch.rand(2).tolist(), torch.initial_seed(), random.random())


@use
def thread():
    def run():
        model = mlp()
        optimizer = adam(model)
        for step in range(5):
            descend(optimizer, small(model(torch.ones(4, 4) * step)))
        digest(*model.parameters())
    one = threading.Thread(target=run)
    one.start()
    one.join()
    model = mlp()
    train(model, adam(model), 4)


@use
def loader():
    model = mlp()
    optimizer = adam(model)
    data = torch.utils.data.TensorDataset(batch(24), torch.randint(0, 2, (24,)))
    for _ in range(2):
        for x, labels in torch.utils.data.DataLoader(data, 8, shuffle=True, num_workers=2):
            descend(optimizer, F.cross_entropy(model(x), labels))
    digest(*model.parameters())


@use
def forked():
    model = mlp()
    model.share_memory()
    process = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
    process.start()
    process.join()
    saw(process.exitcode)
    train(model, adam(model), 4)


def main():
    if len(sys.argv) < 3:
        print(" ".join(USES))
        return
    warnings.simplefilter("ignore")
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    USES[sys.argv[1]]()
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(SEEN) + "\n")


if __name__ == "__main__":
    main()
