# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory snapshots with the structure that PyTorch gives them, from a simulated training.

An allocator hands out blocks of segments as PyTorch's does (sizes rounded to 512 bytes, first fit, blocks split and
merged), and records what it did. `Device.snapshot()` is what torch.cuda.memory._snapshot() returns.
"""
import itertools

ROUND = 512
SEGMENT = {"small": 2 << 20, "large": 20 << 20}
PYTHON = "/usr/lib/python3.11/"
TORCH = "/env/lib/python3.11/site-packages/torch/"
USER = "/home/me/train.py"


def frame(filename, line, name):
    """A frame as PyTorch describes it."""
    return {"filename": filename, "line": line, "name": name}


MAIN = frame(USER, 90, "<module>")
CALL = [frame(TORCH + "nn/modules/module.py", 1786, "_call_impl"),
        frame(TORCH + "nn/modules/module.py", 1775, "_wrapped_call_impl")]
STACKS = {
    "weights": [frame(TORCH + "nn/modules/module.py", 1329, "convert"),
                frame(TORCH + "nn/modules/module.py", 930, "_apply"),
                frame(TORCH + "nn/modules/module.py", 1343, "to"), frame(USER, 12, "build"), MAIN],
    "activations": [frame(TORCH + "nn/functional.py", 1704, "relu"), *CALL, frame(USER, 31, "forward"), *CALL,
                    frame(USER, 44, "train"), MAIN],
    "more activations": [frame(TORCH + "nn/modules/linear.py", 125, "forward"), *CALL, frame(USER, 32, "forward"),
                         *CALL, frame(USER, 44, "train"), MAIN],
    "gradients": [frame(TORCH + "autograd/graph.py", 829, "_engine_run_backward"),
                  frame(TORCH + "autograd/__init__.py", 347, "backward"),
                  frame(TORCH + "_tensor.py", 581, "backward"), frame(USER, 46, "train"), MAIN],
    "optimizer": [frame(TORCH + "optim/adam.py", 176, "_init_group"), frame(TORCH + "optim/adam.py", 235, "step"),
                  frame(TORCH + "optim/optimizer.py", 493, "wrapper"), frame(USER, 47, "train"), MAIN],
    "temporary": [frame(TORCH + "optim/adam.py", 400, "_single_tensor_adam"),
                  frame(TORCH + "optim/adam.py", 235, "step"), frame(TORCH + "optim/optimizer.py", 493, "wrapper"),
                  frame(USER, 47, "train"), MAIN],
    "leak": [frame(USER, 50, "remember"), frame(USER, 48, "train"), MAIN],
    "batch": [frame(TORCH + "utils/data/_utils/pin_memory.py", 58, "pin_memory"),
              frame(PYTHON + "threading.py", 975, "run"), frame(USER, 42, "train"), MAIN],
    "nothing": [],
}


class Device:
    """The caching allocator of one device."""

    def __init__(self, number=0, entries=None, clock=None):
        self.number = number
        self.entries = entries  # the length of the trace; None: unlimited
        self.segments = []  # each a dict with its list of blocks, in order of addresses
        self.trace = []
        self.clock = clock or itertools.count(1_700_000_000_000_000, 37)
        self.address = 0x7f0000000000 + (number << 40)

    def event(self, action, size, stack, **more):
        """Appends to the trace, which keeps the last entries only."""
        self.trace.append({"action": action, **more, "size": size, "stream": 0, "time_us": next(self.clock),
                           "compile_context": "N/A", "user_metadata": "", "frames": STACKS[stack]})
        if self.entries and len(self.trace) > self.entries:
            del self.trace[0]

    def new_segment(self, size, stack):
        """Asks the device for memory."""
        kind = "small" if size <= 1 << 20 else "large"
        total = max(SEGMENT[kind], (size + (2 << 20) - 1) // (2 << 20) * (2 << 20))
        segment = {"address": self.address, "total_size": total, "kind": kind,
                   "blocks": [{"address": self.address, "size": total, "state": "inactive"}]}
        self.address += total + (2 << 20)
        self.segments.append(segment)
        self.event("segment_alloc", total, stack, addr=segment["address"])
        return segment

    def alloc(self, requested, stack):
        """Returns the address of a block."""
        size = max(ROUND, (requested + ROUND - 1) // ROUND * ROUND)
        kind = "small" if size <= 1 << 20 else "large"
        for segment in self.segments:
            if segment["kind"] == kind and any(b["state"] == "inactive" and b["size"] >= size
                                               for b in segment["blocks"]):
                break
        else:
            segment = self.new_segment(size, stack)
        at, block = next((i, b) for i, b in enumerate(segment["blocks"])
                         if b["state"] == "inactive" and b["size"] >= size)
        if block["size"] > size:
            segment["blocks"].insert(at + 1, {"address": block["address"] + size, "size": block["size"] - size,
                                              "state": "inactive"})
        block.update(size=size, state="active_allocated", requested=requested, stack=stack)
        self.event("alloc", requested, stack, addr=block["address"])
        return block["address"]

    def find(self, address):
        """The segment and index of a block."""
        for segment in self.segments:
            for i, block in enumerate(segment["blocks"]):
                if block["address"] == address and block["state"] != "inactive":
                    return segment, i
        raise KeyError(hex(address))

    def free(self, address, stack="nothing", pending=False):
        """Frees a block; pending: another stream still uses it."""
        segment, i = self.find(address)
        blocks = segment["blocks"]
        self.event("free_requested", blocks[i]["requested"], stack, addr=address)
        if pending:
            blocks[i]["state"] = "active_pending_free"
            return
        self.event("free_completed", blocks[i]["requested"], stack, addr=address)
        blocks[i].update(state="inactive")
        for j in (i, i - 1):
            if 0 <= j < len(blocks) - 1 and blocks[j]["state"] == blocks[j + 1]["state"] == "inactive":
                blocks[j]["size"] += blocks.pop(j + 1)["size"]

    def oom(self, requested, free, stack):
        """An allocation that failed."""
        self.event("oom", requested, stack, device_free=free)

    def described(self, old):
        """The segments as a snapshot has them."""
        for segment in self.segments:
            active = [b for b in segment["blocks"] if b["state"] != "inactive"]
            allocated = [b for b in active if b["state"] == "active_allocated"]
            described = {
                "device": self.number, "address": segment["address"], "total_size": segment["total_size"],
                "allocated_size": sum(b["size"] for b in allocated), "active_size": sum(b["size"] for b in active),
                "stream": 0, "segment_type": segment["kind"]}
            if not old:
                described.update(requested_size=sum(b["requested"] for b in active), segment_pool_id=(0, 0),
                                 is_expandable=False, frames=STACKS["nothing"])
            described["blocks"] = [old_block(b) if old else new_block(b) for b in segment["blocks"]]
            yield described


def new_block(block):
    """As PyTorch 2.1 and later describe it."""
    used = block["state"] != "inactive"
    return {"address": block["address"], "size": block["size"],
            "requested_size": block["requested"] if used else 0, "state": block["state"],
            "frames": STACKS[block["stack"]] if used else STACKS["nothing"]}


def old_block(block):
    """As PyTorch 1.13 and 2.0 describe it: inactive blocks keep the history of what they held."""
    described = {"size": block["size"], "state": block["state"]}
    if "stack" in block:
        described["history"] = [{"addr": block["address"], "real_size": block["requested"],
                                 "frames": STACKS[block["stack"]]},
                                {"addr": block["address"], "real_size": 1, "frames": STACKS["nothing"]}]
    return described


def snapshot(*devices, old=False):
    """The dict that torch.cuda.memory._snapshot() returns."""
    count = max(d.number for d in devices) + 1
    traces = [[] for _ in range(count)]
    for device in devices:
        traces[device.number] = device.trace
    found = {"segments": [s for d in devices for s in d.described(old)], "device_traces": traces}
    if not old:
        found["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
            "expandable_segments": False, "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}
        found["external_annotations"] = [{"stage": "START", "name": "ProfilerStep#1", "device": 0, "time_us": 1}]
    return found


def train(device, steps, leak=0, layers=4, activation=3 << 20, ends=None, keep=None):
    """Weights, then steps of forward, backward and optimizer. Returns the addresses that are still allocated. `ends`
    gets the length of the trace after each step. Of what leaks, only the last `keep` stay."""
    weights = [device.alloc(400_001 * (i + 1), "weights") for i in range(layers)]
    states, kept = [], []
    for _ in range(steps):
        batch = device.alloc(123_456, "batch")
        forward = [device.alloc(activation + 100 * i, "activations" if i % 2 else "more activations")
                   for i in range(2 * layers)]
        gradients = []
        for i in range(layers):
            gradients.append(device.alloc(400_001 * (i + 1), "gradients"))
            for _ in range(2):
                device.free(forward.pop())
        if leak:
            kept.append(device.alloc(leak, "leak"))
            if keep and len(kept) > keep:
                device.free(kept.pop(0))
        if not states:
            states = [device.alloc(400_001 * (i + 1), "optimizer") for i in range(layers) for _ in range(2)]
        for i in range(layers):
            device.free(device.alloc(400_001 * (i + 1), "temporary"), "temporary")
        for address in gradients:
            device.free(address)
        device.free(batch)
        if ends is not None:
            ends.append(len(device.trace))
    return weights + states + kept
