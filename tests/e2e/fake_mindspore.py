# SPDX-License-Identifier: GPL-3.0-or-later
"""A MindSpore training process that trains nothing: it speaks debugger.EventListener as the real ones
do, release by release, through the stock gRPC library and messages generated from our own .proto files.

    trainer = FakeMindSpore(port, version="1.9.0", backend="GPU", steps=3)
    trainer.start()

What it does and sees is kept in `trainer.log`, so that a test can wait for it. Run as a program it takes
its address from MS_DEBUGGER_HOST and MS_DEBUGGER_PORT and its behaviour from the command line.
"""
import argparse
import dataclasses
import math
import os
import pathlib
import sys
import threading

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

PIECE = 3145728
SERVICE = "/debugger.EventListener/"
SCOPE = "Default/network-WithLossCell/_backbone-Net"

pbg, pb = harness.load_messages("debug_graph", "debug_grpc")

DTYPES = {np.dtype("bool"): 1, np.dtype("int8"): 2, np.dtype("int16"): 3, np.dtype("int32"): 4,
          np.dtype("int64"): 5, np.dtype("uint8"): 6, np.dtype("uint16"): 7, np.dtype("uint32"): 8,
          np.dtype("uint64"): 9, np.dtype("float16"): 10,
          np.dtype("float32"): 11, np.dtype("float64"): 12}


# ---- what is trained ----------------------------------------------------------------------------

@dataclasses.dataclass
class Kernel:
    name: str  # full name
    op: str
    inputs: tuple = ()  # full names of kernels, names of parameters, "cstN"
    outputs: object = None  # step -> list of arrays; None: nothing is ever stored
    in_graph: bool = True
    source: str = ""
    attributes: dict = dataclasses.field(default_factory=dict)

    @property
    def scope(self):
        return self.name.rpartition("/")[0]


@dataclasses.dataclass
class Graph:
    name: str
    kernels: list
    parameters: dict  # name -> (completed steps -> array)
    constants: dict = dataclasses.field(default_factory=dict)  # "cst1" -> (full name, array)
    padding: int = 0  # bytes of an attribute that makes the message large


def weight(step, scale=0.5):
    return (np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5) * np.float32(scale) - np.float32(0.1 * step)


def small_graph(name="kernel_graph_0", nan_step=None, extra=(), padding=0):
    """Forward, loss, gradient, optimizer; kernels in execution order."""
    def relu(step):
        out = np.maximum(weight(step) * 2, 0)
        if nan_step is not None and step >= nan_step:
            out[0, 1] = np.nan
        return [out]

    conv = Kernel(f"{SCOPE}/conv1-Conv2d/Conv2D-op1", "Conv2D", ("x", "conv1.weight"),
                  lambda step: [np.full((2, 3), step, np.float32)],
                  source="      # In file /src/lenet.py(42)/        x = self.conv1(x)/\n",
                  attributes={"pad_mode": "valid", "stride": [1, 1]})
    act = Kernel(f"{SCOPE}/relu-ReLU/ReLU-op2", "ReLU", (conv.name,), relu,
                 source="      # In file /src/lenet.py:43/        x = self.relu(x)/\n")
    bias = Kernel(f"{SCOPE}/fc1-Dense/BiasAdd-op3", "BiasAdd", (act.name, "fc1.bias"),
                  lambda step: [np.arange(4, dtype=np.float16) + np.float16(step)])
    loss = Kernel("Default/network-WithLossCell/_loss_fn-Loss/Loss-op4", "SoftmaxCrossEntropyWithLogits",
                  (bias.name, "cst1"), lambda step: [np.float32(2.0) / (step or 1),
                                                     np.arange(3, dtype=np.int32)])
    grad = Kernel(f"Gradients/{SCOPE}/gradConv2D/Conv2DBackpropFilter-op5", "Conv2DBackpropFilter",
                  (loss.name,), lambda step: [np.full((2, 3), 1e-3, np.float32)])
    update = Kernel("Default/optimizer-Momentum/ApplyMomentum-op6", "ApplyMomentum",
                    ("conv1.weight", "moments.conv1.weight", grad.name),
                    lambda step: [np.zeros((1,), np.float32)])
    parameters = {"x": lambda step: np.ones((2, 3), np.float32), "conv1.weight": weight,
                  "fc1.bias": lambda step: np.zeros(4, np.float16),
                  "moments.conv1.weight": lambda step: np.full((2, 3), 0.25 * step, np.float32)}
    return Graph(name, [conv, act, bias, loss, *extra, grad, update], parameters,
                 {"cst1": ("Default--data-5", np.array(1, np.int64))}, padding)


def type_proto(arrays, out):
    def tensor(array, one):
        one.data_type = pbg.DT_TENSOR
        one.tensor_type.elem_type = DTYPES[array.dtype]
        for size in array.shape:
            one.tensor_type.shape.dim.add().size = size

    if len(arrays) == 1:
        tensor(np.asarray(arrays[0]), out)
        return
    out.data_type = pbg.DT_TUPLE
    for array in arrays:
        tensor(np.asarray(array), out.sequence_type.elem_types.add())


def graph_proto(graph, version):
    """Operators from the return node on, numbered in that order; names resolve backwards."""
    proto = pbg.GraphProto(name=graph.name)
    if version >= (1, 3):
        proto.root_name = graph.name.rpartition("_")[2]
    kernels = [kernel for kernel in graph.kernels if kernel.in_graph]
    number = {kernel.name: str(i + 1) for i, kernel in enumerate(kernels)}
    for kernel in kernels:
        node = proto.node.add(name=number[kernel.name], op_type=kernel.op, scope=kernel.scope,
                              full_name=kernel.name)
        for name in kernel.inputs:
            node.input.add(name=number.get(name, name), type=pbg.InputProto.DATA_EDGE)
        if kernel.outputs:
            type_proto(kernel.outputs(0), node.output_type)
        if version >= (1, 2):
            node.source_address = kernel.source if version >= (1, 3) else ""
        for key, value in kernel.attributes.items():
            attribute = node.attribute.add(name=key)
            if isinstance(value, str):
                attribute.value.dtype = pbg.DT_STRING
                attribute.value.str_val = value
            else:
                attribute.value.dtype = pbg.DT_INTS64
                attribute.value.int_vals.extend(value)
    if graph.padding:
        proto.node[0].attribute.add(name="padding").value.str_val = "p" * graph.padding
    for name, value in graph.parameters.items():
        type_proto([value(0)], proto.parameters.add(name=name).type)
    for key, (full_name, value) in graph.constants.items():
        constant = proto.const_vals.add(key=key)
        constant.value.dtype = DTYPES[value.dtype]
        constant.value.int_val = int(value)
        if version >= (1, 6):
            constant.full_name = full_name
    return proto.SerializeToString()


# ---- conditions, as a process evaluates them ----------------------------------------------------

NEVER_TOLD = (None, 0, [])


def tolerances(params, old_order):
    """rtol and atol of "not changed": read by position, in another order before 1.6."""
    first, second = (1e-5, 1e-8) if not old_order else (1e-8, 1e-5)
    first = first if params[0].disabled else params[0].value
    second = second if params[1].disabled else params[1].value
    return (second, first) if old_order else (first, second)


def statistics(values, before, params, wire):
    """What there is to compare, by name; what a process does not compute is absent."""
    count = max(values.size, 1)
    stats = {"max": values.max(initial=-np.finfo(float).max),
             "min": values.min(initial=np.finfo(float).max),
             "zero_percentage": np.count_nonzero(values == 0) * 100 / count}
    stats["max_min"] = stats["max"] - stats["min"]
    if 9 <= wire <= 12 or (wire in (15, 16) and not params[3].disabled):
        stats["mean"] = values.mean()
    if 9 <= wire <= 12:
        stats["sd"] = values.std(ddof=1) if values.size > 1 else 0.0
    if wire in (15, 16) and not params[0].disabled:
        stats["abs_mean"] = np.abs(values).mean()
    if wire == 21 and not (params[0].disabled and params[1].disabled):
        start = -math.inf if params[0].disabled else params[0].value
        end = math.inf if params[1].disabled else params[1].value
        stats["range_percentage"] = np.count_nonzero((values >= start) & (values <= end)) * 100 / count
    if before is not None and before.size == values.size:
        stats["abs_mean_update_ratio"] = np.abs(values - before).mean() / (np.abs(before).mean() + 1e-9)
    return stats


def is_unchanged(values, before, params, old_order):
    if before is None or before.size != values.size:
        return False
    rtol, atol = tolerances(params, old_order)
    return bool(np.all(np.abs(values - before) <= atol + rtol * np.abs(before)))


TESTS = {"gt": lambda a, b: a > b, "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b,
         "le": lambda a, b: a <= b}


def evaluate(condition, array, previous, old_order):
    """(fired, error bits, parameters of the hit); fired is None when the tensor is skipped."""
    wire = condition.condition
    if array.size == 0 or array.dtype not in DTYPES:
        return NEVER_TOLD
    values = np.asarray(array, np.float64).ravel()
    before = None if previous is None else np.asarray(previous, np.float64).ravel()
    nan, inf = np.isnan(values).any(), np.isinf(values).any()
    params = [pb.WatchCondition.Parameter(name=p.name, disabled=p.disabled, value=p.value)
              for p in condition.params]
    if wire in (0, 1, 13):
        return bool((nan and wire != 1) or (inf and wire != 0)), 0, params
    error = int(nan) | int(inf) << 1
    if wire in (18, 19, 20) and previous is None:
        error |= 4
    if error:
        return False, error, params
    fired = wire == 20 and is_unchanged(values, before, condition.params, old_order)
    stats = statistics(values, before, condition.params, wire)
    for param in params:
        name, _, how = param.name.rpartition("_")
        if param.disabled or name not in stats or how not in TESTS:
            continue
        param.actual_value = float(stats[name])
        param.hit = bool(TESTS[how](stats[name], param.value))
        fired = fired or param.hit
    return fired, 0, params


# ---- the process --------------------------------------------------------------------------------

class Gone(Exception):
    """The server is gone, or the test wants the process to be."""


class FakeMindSpore(threading.Thread):
    def __init__(self, port, version="2.0.0", backend="GPU", steps=3, graphs=None, device=0,
                 host="127.0.0.1", heartbeat=None, mindrt=True, send_version=None, break_tensor=None,
                 send_graphs=True, introduce=True, done=True, partial=False, alternate=False, patience=None,
                 keeps=False, counts_early=False):
        super().__init__(daemon=True)
        self.version = tuple(int(part) for part in version.split(".")[:3])
        self.spelled = send_version if send_version is not None else {
            "1.4.0": "1.3.0", "1.1.1": "1.1.0"}.get(version, version)
        self.backend, self.steps, self.device = backend, steps, device
        self.graphs = graphs or [small_graph()]
        self.heartbeat = heartbeat  # period that is told; None: as the release does
        self.mindrt = mindrt and self.version >= (1, 6)
        self.break_tensor = break_tensor  # "short", "long", "vanish", "garbage", "skip"
        self.send_graphs, self.introduce, self.done = send_graphs, introduce, done
        self.partial = partial  # Ascend: only what is watched is held
        self.keeps = keeps  # a GPU that still holds what operators gave in the step before
        self.counts_early = counts_early  # without the actor runtime, met in the middle of its training
        self.alternate = alternate  # each step runs one graph, the next step the next one
        # patience: seconds for which the server may not stir while the process waits; then it ends itself
        alive = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_timeout_ms", patience * 1000),
                 ("grpc.http2.max_pings_without_data", 0)] if patience else []
        self.channel = grpc.insecure_channel(f"{host}:{port}", options=alive + [
            ("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1)])
        self.cur_step, self.cur_node, self.completed = int(counts_early), "", int(counts_early)
        self.level, self.target = "step", ""
        self.exit_marked, self.initial, self.node_stop, self.at_end = False, True, False, True
        self.watchpoints, self.checked, self.store, self.previous = {}, set(), {}, {}
        self.matched, self.bad_replies, self.polls, self.run_commands = None, [], 0, []
        self.log, self.condition = [], threading.Condition()
        self.error = None

    # -- calls

    def note(self, kind, value=None):
        with self.condition:
            self.log.append((kind, value))
            self.condition.notify_all()

    def wait_note(self, kind, deadline=60, test=lambda value: True, count=1):
        """Waits until the log holds `count` entries of that kind that pass the test."""
        def found():
            return [value for what, value in self.log if what == kind and test(value)]
        with self.condition:
            if not self.condition.wait_for(lambda: len(found()) >= count, deadline):
                raise AssertionError(f"no {kind} in {self.log[-20:]} ({self.error})")
            return found()[count - 1]

    def call(self, method, request):
        stream = not hasattr(request, "SerializeToString")
        make = self.channel.stream_unary if stream else self.channel.unary_unary
        return make(SERVICE + method, request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=pb.EventReply.FromString)(request, wait_for_ready=False)

    def metadata(self, **more):
        """With the graph that runs, or ran last, where each step runs another one."""
        here = self.running()[-1] if self.alternate else self.graphs[0]
        return pb.Metadata(device_name=f"{self.device}:{here.name.rpartition('_')[2]}",
                           cur_step=self.cur_step, backend=self.backend,
                           cur_node=self.cur_node if self.backend == "GPU" else "", **more)

    def send_heartbeat(self):
        self.call("SendHeartbeat", pb.Heartbeat(message="Debugger is alive", period=self.heartbeat or 30))
        self.note("heartbeat")

    def pieces(self, data, earlier):
        """The chunks of one graph in SendMultiGraphs, with what 1.1 and 1.2 do wrong."""
        parts = [data[at:at + PIECE] for at in range(0, len(data), PIECE)]
        if len(parts) == 1 or self.version >= (1, 3):
            return [pb.Chunk(buffer=part, finished=i == len(parts) - 1) for i, part in enumerate(parts)]
        chunks = [pb.Chunk(buffer=part, finished=i == 0 and earlier) for i, part in enumerate(parts)]
        return chunks + [pb.Chunk(buffer=parts[-1], finished=True)]

    def send_all_graphs(self):
        data = [graph_proto(graph, self.version) for graph in self.graphs]
        if len(data) == 1:
            parts = [pb.Chunk(buffer=data[0][at:at + PIECE]) for at in range(0, len(data[0]), PIECE)]
            self.call("SendGraph", iter(parts))
        else:
            chunks = []
            for number, one in enumerate(data):
                chunks += self.pieces(one, number > 0)
            self.call("SendMultiGraphs", iter(chunks))
        self.note("graphs", len(data))

    # -- the tensors that are held

    def kernel_outputs(self, kernel, step):
        return [np.ascontiguousarray(value) for value in kernel.outputs(step)] if kernel.outputs else []

    def load_parameters(self):
        """Ascend and GPU up to 1.6.0 reload at the end of a step; later GPUs show the initial values
        until something watched used a parameter, and never a previous one."""
        keeps = self.backend != "GPU" or self.version <= (1, 6, 0)
        for graph in self.graphs:
            for name, value in graph.parameters.items():
                if keeps and name in self.store:
                    self.previous[name] = self.store[name]
                self.store[name] = np.ascontiguousarray(value(self.completed))
            for full_name, value in graph.constants.values():
                self.store[full_name.replace("/", "--")] = value

    def is_watched(self, kernel):
        """The name matches, or that of a direct input."""
        for entry in (node for nodes, _ in self.watchpoints.values() for node in nodes):
            tail = entry.rpartition("/")[2]
            if entry == kernel.name or tail in kernel.inputs:
                return True
        return False

    def read_kernel(self, kernel, step):
        for slot, value in enumerate(self.kernel_outputs(kernel, step)):
            if not kernel.op.startswith("BatchNorm") or slot in (0, 3, 4):
                self.store[f"{kernel.name}:{slot}"] = value
        for name in kernel.inputs:
            for graph in self.graphs:
                if name in graph.parameters:
                    self.store[name] = np.ascontiguousarray(graph.parameters[name](self.completed))
                for producer in graph.kernels:
                    if producer.name == name and producer.outputs:
                        self.store[f"{name}:0"] = self.kernel_outputs(producer, step)[0]

    def running(self):
        """The graphs of this step, or of the one that has just ended."""
        if not self.alternate:
            return self.graphs
        step = self.completed + (0 if self.at_end else 1)
        return [self.graphs[max(step - 1, 0) % len(self.graphs)]]

    def is_of_other_graph(self, name):
        if self.version < (1, 6) or not self.alternate:
            return False
        here = [graph for graph in self.graphs if name in graph.parameters or
                any(kernel.name == name for kernel in graph.kernels)]
        return bool(here) and not any(graph in here for graph in self.running())

    def lookup(self, tensor):
        name = tensor.node_name.rpartition("/")[2] if tensor.truncate else tensor.node_name
        table = self.previous if tensor.iter == "prev" else self.store
        return table.get(f"{name}:{tensor.slot}", table.get(name) if tensor.slot == "0" else None)

    # -- watchpoints

    def hits_of(self, names, recheck=False, step_end=False):
        hits = []
        orders = {kernel.name: i + 1 for graph in self.graphs for i, kernel in enumerate(graph.kernels)}
        for full in sorted(names):
            value = self.store[full]
            name, _, slot = full.rpartition(":") if ":" in full else (full, "", "0")
            if self.is_of_other_graph(name):
                continue
            for number, (nodes, condition) in self.watchpoints.items():
                wire = condition.condition
                entry = next((node for node in nodes if node == name or node.rpartition("/")[2] == name),
                             None)
                if entry is None or (wire == 14) != self.initial:
                    continue
                if wire in (18, 19, 20) and not (step_end or recheck):
                    continue
                if not recheck and (full, number) in self.checked:
                    continue
                if not recheck:
                    self.checked.add((full, number))
                previous = self.previous.get(full)
                fired, error, params = evaluate(condition, value, previous, self.version < (1, 6))
                if fired or error:
                    hit = pb.WatchpointHit(id=number, error_code=error)
                    hit.tensor.node_name, hit.tensor.slot, hit.tensor.finished = entry, slot or "0", True
                    hit.watch_condition.condition = wire
                    hit.watch_condition.params.extend(params)
                    hits.append((orders.get(name, 0), hit))
        if self.version >= (1, 3):  # those of one order come out backwards
            hits = sorted(reversed(hits), key=lambda pair: pair[0])
        return [hit for _, hit in hits]

    def send_hits(self, hits):
        if hits:
            self.call("SendWatchpointHits", iter(hits))
            self.note("hits", [(hit.id, hit.tensor.node_name, hit.error_code) for hit in hits])
        return bool(hits)

    # -- views

    def broken_value(self, tensor, value):
        message = pbg.TensorProto(node_name=tensor.node_name, slot=tensor.slot, iter=tensor.iter,
                                  truncate=tensor.truncate, finished=True, dims=value.shape,
                                  data_type=DTYPES[value.dtype])
        data = value.tobytes()
        message.tensor_content = {"short": data[:-3], "long": data + b"more"}.get(self.break_tensor, data)
        if self.break_tensor == "vanish":
            message.finished = False
            message.tensor_content = data[:len(data) // 2]
        return message

    def value_messages(self, tensor):
        value = self.lookup(tensor)
        if value is None:
            yield pbg.TensorProto(node_name=tensor.node_name, slot=tensor.slot, iter=tensor.iter,
                                  truncate=tensor.truncate, finished=True)
            return
        if self.break_tensor:
            yield self.broken_value(tensor, value)
            if self.break_tensor == "vanish":
                os._exit(9)
            return
        data = value.tobytes()
        for at in range(0, len(data), PIECE):  # none at all for a tensor without elements
            yield pbg.TensorProto(node_name=tensor.node_name, slot=tensor.slot, iter=tensor.iter,
                                  truncate=tensor.truncate, finished=at + PIECE >= len(data),
                                  tensor_content=data[at:at + PIECE], dims=value.shape,
                                  data_type=DTYPES[value.dtype])

    def base_of(self, tensor):
        value = None if self.is_of_other_graph(tensor.node_name) else self.lookup(tensor)
        if value is None:
            return pb.TensorBase(shape=[0])
        return pb.TensorBase(data_type=DTYPES[value.dtype], shape=value.shape, data_size=value.nbytes)

    def summary_of(self, tensor):
        value = None if self.is_of_other_graph(tensor.node_name) else self.lookup(tensor)
        if value is None:
            return pb.TensorSummary(tensor_base=pb.TensorBase(),
                                    statistics=pb.Statistics(max_value=-math.inf, min_value=math.inf))
        values = np.asarray(value, np.float64).ravel()
        finite = values[np.isfinite(values)]
        average = finite.mean() if finite.size else 0
        if values.size > 10000 and self.version >= (1, 6):  # that of the first part alone
            first = values[:max(10000, values.size // 32)]
            average = first[np.isfinite(first)].mean()
        extremes = finite
        if self.version >= (2, 3):
            extremes = values
            average = values.mean() if np.isnan(values).any() else average
        return pb.TensorSummary(tensor_base=self.base_of(tensor), statistics=pb.Statistics(
            is_bool=value.dtype == bool, count=values.size, max_value=extremes.max(initial=-math.inf),
            min_value=extremes.min(initial=math.inf), avg_value=average,
            neg_zero_count=int((finite < 0).sum()), pos_zero_count=int((finite > 0).sum()),
            zero_count=int((values == 0).sum()), nan_count=int(np.isnan(values).sum()),
            neg_inf_count=int(np.isneginf(values).sum()), pos_inf_count=int(np.isposinf(values).sum())))

    def answer_view(self, view):
        level = view.level if self.version >= (1, 5) else pb.ViewCMD.value
        self.note("view", (level, [(t.node_name, t.slot, t.iter, t.truncate) for t in view.tensors]))
        if level == pb.ViewCMD.base:
            self.call("SendTensorBase", iter([self.base_of(tensor) for tensor in view.tensors]))
        elif level == pb.ViewCMD.statistics:
            self.call("SendTensorStats", iter([self.summary_of(tensor) for tensor in view.tensors]))
        else:
            self.call("SendTensors", (message for tensor in view.tensors
                                      for message in self.value_messages(tensor)))

    # -- the wait loop

    def set_watchpoint(self, command):
        self.note("set", command)
        assert command.id >= 1
        if command.delete:
            self.watchpoints.pop(command.id, None)
            return
        least = {15: 4, 16: 4, 20: 2, 21: 2, 18: 1, 19: 1}
        if len(command.watch_condition.params) < least.get(command.watch_condition.condition, 0):
            raise AssertionError("this parameter list crashes a real process")
        assert all(node.node_type != "scope" and node.node_name != "*" for node in command.watch_nodes)
        self.watchpoints[command.id] = ([node.node_name for node in command.watch_nodes],
                                        command.watch_condition)

    def obey(self, reply):
        """True when the wait is over."""
        kind = reply.WhichOneof("cmd")
        if kind == "exit":
            self.note("exit")
            self.exit_marked = True
            return True
        if kind == "run_cmd":
            run = reply.run_cmd
            self.note("run", (run.run_level, run.node_name))
            if run.run_level == "recheck":
                self.send_hits(self.hits_of(list(self.store), recheck=True))
                return False
            self.initial, self.level, self.target = False, run.run_level, run.node_name
            return True
        if kind == "set_cmd":
            self.set_watchpoint(reply.set_cmd)
        elif kind == "view_cmd":
            self.answer_view(reply.view_cmd)
        elif kind is None:
            self.polls += 1
        else:
            self.bad_replies.append(kind)
        return False

    def wait_loop(self):
        metadata = self.metadata()
        self.note("wait", (self.cur_step, self.cur_node))
        while True:
            try:
                reply = self.call("WaitCMD", metadata)
            except (grpc.RpcError, ValueError) as error:
                raise Gone(str(error)) from error
            if reply.status != pb.EventReply.OK:
                self.bad_replies.append(reply.status)
                raise Gone("a reply that is not OK")
            if self.obey(reply):
                return

    # -- steps

    def after_kernel(self, kernel, last):
        """A GPU stops here for a hit, or when it is stepped by nodes."""
        hits = []
        stops = self.level == "node" and self.target in ("", kernel.name)
        if stops and last and (1, 2) <= self.version < (1, 3):
            stops = False
        if self.is_watched(kernel) or stops:
            self.read_kernel(kernel, self.completed + 1)
            names = [name for name in self.store if name.rpartition(":")[0] == kernel.name]
            if self.is_watched(kernel):  # its inputs have their turn at the end of the step
                hits = self.hits_of(names)
        if self.send_hits(hits) or stops:
            self.node_stop = self.node_stop or stops
            self.wait_loop()

    def run_graph(self, graph):
        for kernel in graph.kernels:
            self.cur_node = kernel.name
            if self.backend == "GPU":
                self.after_kernel(kernel, kernel is graph.kernels[-1])

    def step_end(self):
        self.completed += 1
        self.at_end = True
        if self.backend != "GPU":
            for graph in self.running():
                for kernel in graph.kernels:
                    if self.partial and not self.is_watched(kernel):
                        continue
                    for slot, value in enumerate(self.kernel_outputs(kernel, self.completed)):
                        self.store[f"{kernel.name}:{slot}"] = value
        if self.backend != "GPU" or self.version <= (1, 6, 0):
            self.load_parameters()
        counts_after = self.version >= (1, 6) and (self.mindrt or self.backend != "GPU")
        if not counts_after:
            self.cur_step += 1
        self.send_hits(self.hits_of(list(self.store), step_end=True))
        skip = self.backend == "GPU" and self.level == "node" and self.node_stop and self.version >= (1, 3)
        if not skip and not (self.backend == "GPU" and (1, 3) <= self.version < (1, 6)):
            self.wait_loop()
        if counts_after:
            self.cur_step += 1
        self.note("step", self.completed)

    def begin_step(self, number):
        waits_here = self.backend == "GPU" and (1, 3) <= self.version < (1, 6) and number
        if waits_here and not (self.level == "node" and self.node_stop):
            self.wait_loop()
        self.node_stop = False
        self.checked.clear()
        self.at_end = False
        parameters = {name for graph in self.graphs for name in graph.parameters}
        reloads = self.version <= (1, 6, 0)
        if self.backend == "GPU" and not self.keeps:
            for name in [name for name in self.store if ":" in name or
                         (number and not reloads and name in parameters)]:
                del self.store[name]
        elif self.partial:
            for name in [name for name in self.store if ":" in name]:
                del self.store[name]

    def train(self):
        if self.heartbeat or self.version >= (1, 5):
            self.send_heartbeat()
        self.load_parameters()
        if self.introduce:
            reply = self.call("SendMetadata", self.metadata(graph_num=len(self.graphs),
                                                            ms_version=self.spelled))
            if reply.WhichOneof("cmd") != "version_matched":
                raise AssertionError("a process would take this for a server that is too old")
            self.matched = reply.version_matched
        if self.send_graphs and self.matched is not False:
            self.send_all_graphs()
        self.wait_loop()
        for number in range(self.steps):
            if self.exit_marked:
                break
            self.begin_step(number)
            if self.exit_marked:
                break
            for graph in self.running():
                self.run_graph(graph)
            self.step_end()
        if self.done:
            self.call("SendMetadata", self.metadata(training_done=True, ms_version=self.spelled))
        self.note("done")

    def run(self):
        try:
            self.train()
        except Gone as error:
            self.note("gone", str(error))
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
            self.note("failed", repr(error))
        finally:
            self.channel.close()

    def vanish(self):
        """As if the process were killed: nothing is said, the connection closes."""
        self.channel.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", default="2.0.0")
    parser.add_argument("--backend", default="GPU")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--break-tensor")
    parser.add_argument("--nan-step", type=int)
    options = parser.parse_args()
    trainer = FakeMindSpore(int(os.environ.get("MS_DEBUGGER_PORT", "50051")), version=options.version,
                            backend=options.backend, steps=options.steps, device=options.device,
                            host=os.environ.get("MS_DEBUGGER_HOST", "localhost"),
                            graphs=[small_graph(nan_step=options.nan_step)],
                            break_tensor=options.break_tensor)
    trainer.run()
    if trainer.error:
        print(trainer.error, file=sys.stderr)
    sys.exit(1 if trainer.error or trainer.bad_replies else 0)


if __name__ == "__main__":
    main()
