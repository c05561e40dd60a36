# SPDX-License-Identifier: GPL-3.0-or-later
"""Small programs with a fake libgradb that records what the agent reports."""
import json
import subprocess

import harness
import torches

# Runs before each program: `told` has what a debugger would know, `finish()` prints it.
PRELUDE = """
import ctypes, gc, json, sys, weakref
sys.path.insert(0, %r)
import torch
from torch import nn
import torch.nn.functional as F
from gradb.torch.agent import Agent

class Library:  # the functions of libgradb that a training calls
    def __init__(self):
        self.word = ctypes.create_string_buffer(64)
        self.nodes, self.ran, self.events, self.stops, self.steps = {}, [], [], [], 0
        self.wants = 0
    def gradb_open(self, options):
        return ctypes.addressof(self.word)
    def gradb_is_connected(self, handle):
        return True
    def gradb_add_node(self, handle, reference):
        info = reference._obj
        number = len(self.nodes) + 1
        self.nodes[number] = {
            "name": info.name.decode(), "type": info.type.decode(), "phase": info.phase, "kind": info.kind,
            "inputs": [self.nodes[info.inputs[i].node]["name"] for i in range(info.input_count)],
            "dtypes": [info.outputs[i].dtype for i in range(info.output_count)],
            "attrs": {info.attrs[i].name.decode(): info.attrs[i].value.decode() for i in range(info.attr_count)},
            "frames": [[info.frames[i].file.decode(), info.frames[i].function.decode(), info.frames[i].library]
                       for i in range(info.frame_count)]}
        return number
    def gradb_add_inputs(self, handle, node, inputs, count):
        self.nodes[node]["inputs"] += [self.nodes[inputs[i].node]["name"] for i in range(count)]
    def gradb_set_inputs(self, handle, node, inputs, count):
        self.nodes[node]["inputs"] = [self.nodes[inputs[i].node]["name"] for i in range(count)]
    def gradb_wants(self, handle, node):
        return self.wants
    def gradb_did_slow(self, handle, node):
        self.ran.append([self.steps, self.nodes[node]["name"]])
    def gradb_did_with_slow(self, handle, node, tensors, count):
        self.gradb_did_slow(handle, node)
    def gradb_event(self, handle, kind, text, node):
        self.events.append([kind.decode(), text.decode()])
    def gradb_stop(self, handle, text):
        self.stops.append(text.decode())
    def gradb_stop_at(self, handle, node, text):
        self.stops.append(text.decode())
    def gradb_raised(self, handle, node, text):
        self.stops.append(text.decode())
    def gradb_step_end(self, handle):
        self.steps += 1
    def gradb_wants_stop(self, handle):
        return False
    def gradb_wants_checkpoint(self, handle):
        return False
    def __getattr__(self, name):
        if not name.startswith("gradb_"):
            raise AttributeError(name)
        return lambda *args: None

told = Library()
told.wants = 1
agent = Agent(told)
agent.install()
agent.steps.begin()
ctypes.c_int.from_address(agent.handle).value = 1
agent.set_watching(True)

def train(net, loss_of, steps=1, **options):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, **options)
    agent.discover(optimizer)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(step).backward()
        optimizer.step()
    return optimizer

def finish(**more):
    alive = not agent.dead
    agent.close()
    print(json.dumps(dict(nodes=list(told.nodes.values()), ran=told.ran, events=told.events, stops=told.stops,
                          alive=alive, **more)))
"""


class Told:
    """What a program told: its JSON, with nodes by name."""

    def __init__(self, text):
        answer = json.loads(text.strip().splitlines()[-1])
        self.nodes = {node["name"]: node for node in answer["nodes"]}
        self.answer = answer

    def ran(self, step):
        return [name for number, name in self.answer["ran"] if number == step]


class Programs(torches.Folder):
    """Programs with the fake libgradb."""

    def run_program(self, program):
        """The result of subprocess.run for a program that ended normally."""
        path = self.write("program.py", PRELUDE % str(torches.PACKAGE) + program)
        done = subprocess.run([*torches.warm(self.python), path], capture_output=True, text=True,
                              timeout=4 * harness.DEADLINE, env=torches.environment(), cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def told(self, program):
        """What the agent told about a program, without a fault. It ends with finish(), which need not be written."""
        done = self.run_program(program if "\nfinish(" in program else program + "finish()\n")
        told = Told(done.stdout)
        self.assertTrue(told.answer["alive"], done.stderr)
        return told
