# SPDX-License-Identifier: GPL-3.0-or-later
"""Which graph, node and step a name, a hit or a value of a MindSpore process is of: processes with two graphs whose
nodes have the same names, and clients whose step counter or messages say less than those of a release."""
import harness
import numpy as np

import fake_mindspore as fake
from fake_mindspore import SCOPE, FakeMindSpore, Kernel, small_graph
from test_mindspore import BIAS, CONV, RELU, UPDATE, Session


def two_graphs(alone=False):
    """A training graph and an evaluation, whose nodes have the same names; values tell them apart."""
    train, evaluation = small_graph(), small_graph("kernel_graph_1")
    evaluation.kernels = [kernel for kernel in evaluation.kernels
                          if kernel.op not in ("Conv2DBackpropFilter", "ApplyMomentum")]
    relu = evaluation.kernels[1]
    relu.outputs = lambda step: [np.full((2, 3), 100 + step, np.float32)]
    if alone:
        evaluation.kernels.append(Kernel("Default/metric/Equal-op9", "Equal", (relu.name,),
                                         lambda step: [np.full(2, step, np.float32)]))
    return [train, evaluation]


class TwoGraphs(Session):
    """Nodes of equal names: the name of the graph tells them apart, as in MindInsight."""

    def first(self, name):
        return f"kernel_graph_0/{name}"

    def second(self, name):
        return f"kernel_graph_1/{name}"

    def test_every_command_takes_the_name_with_the_graph(self):
        gradb = self.gradb_with()
        self.trainer(version="1.9.0", backend="Ascend", graphs=two_graphs(alone=True), alternate=True)
        gradb.run("step", "end of step 1")
        gradb.run(f"print {RELU}", f"could be '{self.first(RELU)}' or '{self.second(RELU)}'")
        gradb.run(f"node {self.second(RELU)}", rf"^kernel_graph_1/{SCOPE}.*ReLU")
        gradb.run("info node", "graph kernel_graph_1")
        gradb.run(f"info node {self.first('relu-ReLU/ReLU-op2')}", "graph kernel_graph_0")
        gradb.run(f"print {self.first(CONV)}", r"^\[\[1. 1. 1.\]")
        gradb.run(f"stats {self.first(CONV)}", r"^  min +1$")
        gradb.run(f"x {self.first(CONV)}", "1")
        gradb.run(f"whatis {self.second(CONV)}", r"float32 \(2, 3\)")
        gradb.run(f"inputs {self.second(RELU)}", self.second(CONV))
        gradb.run("info node Default/metric/Equal-op9", "^Default/metric/Equal-op9")  # unique: as it is
        gradb.run("info node kernel_graph_1/Equal-op9", "^Default/metric/Equal-op9")
        gradb.run("info scopes -d 1", r"kernel_graph_0/ +11 nodes")
        gradb.run("scope kernel_graph_1/Default/metric", "Equal-op9")
        gradb.run("scope Default", "could be 'kernel_graph_0/Default' or 'kernel_graph_1/Default'")
        gradb.run("search kernel_graph_1/ -a", self.second(RELU))
        gradb.run(f"display {self.second(RELU)}", "kernel_graph_1/")
        gradb.run(f"why {self.first(RELU)}", "kernel_graph_0/")
        gradb.run("complete print kernel_graph_1/Default/met", "^print kernel_graph_1/Default/metric/")
        gradb.run("complete print kernel_g", "^print kernel_graph_1/")
        gradb.run("complete print Default/met", "^print Default/metric/")

    def test_values_are_of_the_graph_that_ran(self):
        gradb = self.gradb_with()
        self.trainer(version="1.3.0", backend="Ascend", graphs=two_graphs(), alternate=True)
        gradb.run("step 2", "end of step 2")
        gradb.run(f"print {self.second(RELU)}", r"^\[\[102. 102. 102.\]")
        gradb.run(f"print {self.first(RELU)}", "graph kernel_graph_1 ran last")
        gradb.run("step", "end of step 3")
        gradb.run(f"print {self.first(RELU)}", r"^ \[0. +0.9 1.9\]\]")
        gradb.run(f"print {self.second(RELU)}", "graph kernel_graph_0 ran last")

    def test_no_name_is_sent_twice(self):
        gradb = self.gradb_with()
        trainer = self.trainer(version="1.9.0", backend="Ascend", graphs=two_graphs())
        gradb.run("watch TO on all", "Watchpoint 1")
        gradb.run("step", "end of step 1")
        names = [node.node_name for node in trainer.wait_note("set").watch_nodes]
        self.assertIn(RELU, names)
        self.assertEqual(len(names), len(set(names)))
        tails = [name.rpartition("/")[2] for name in names if "-op" not in name]
        self.assertEqual(len(tails), len(set(tails)))
        self.assertEqual([name for name in names if name.startswith("kernel_graph")], [])

    def test_hits_are_of_the_graph_that_is_watched(self):
        for graph in (0, 1):
            with self.subTest(graph=graph):
                gradb = self.gradb_with()
                trainer = self.trainer(version="1.9.0", backend="Ascend", graphs=two_graphs())
                gradb.run(f"watch TL max_gt=50 on kernel_graph_{graph}/{RELU}", ": 1 node")
                gradb.run("step", rf"^  kernel_graph_{graph}/{RELU}:0")
                gradb.run("info hits", rf"kernel_graph_{graph}/{RELU}:0")
                self.assertEqual(len(trainer.wait_note("set").watch_nodes), 1)
                self.gradb.__exit__()

    def test_hits_are_of_the_graph_that_ran(self):
        gradb = self.gradb_with()
        self.trainer(version="1.9.0", backend="Ascend", graphs=two_graphs(), alternate=True)
        gradb.run(f"watch TL max_gt=50 on */{RELU.rpartition('/')[2]}", ": 2 nodes")
        gradb.run("continue", f"^  {self.second(RELU)}:0")
        gradb.expect("end of step 2")

    def test_run_to_and_break(self):
        gradb = self.gradb_with()
        self.trainer(version="1.9.0", backend="GPU", graphs=two_graphs(), alternate=True, steps=6)
        gradb.run("step 2", "end of step 2")
        gradb.run(f"run-to {self.second(RELU)}", rf"step 4, {self.second(RELU)}")
        gradb.run(f"tbreak {self.first(RELU)}", "kernel_graph_0/")
        gradb.run("continue", rf"step 5, {self.first(RELU)}")

    def test_a_value_of_the_step_before_says_so(self):
        gradb = self.gradb_with()
        self.trainer(version="1.9.0", backend="GPU", steps=4, keeps=True)
        gradb.run(f"watch TO on {BIAS}", "Watchpoint 1")
        gradb.run("step 2", "end of step 2")
        gradb.run(f"run-to {RELU}", "step 3")
        gradb.run(f"print {BIAS}", rf"{BIAS}:0, of step 2 \(now at step 3\)$")
        gradb.expect(r"^\[2. 3. 4. 5.\]")
        gradb.run(f"print {RELU}", rf"= {RELU}:0$")
        gradb.run(f"stats {BIAS}", "of step 2")
        gradb.run(f"display {BIAS}", "of step 2")
        gradb.run(f"x {BIAS}", "step 2")

    def test_every_line_is_of_one_step(self):
        """A process that was met in its training, and whose counter is not the one of its release."""
        gradb = self.gradb_with()
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="GPU", steps=5, mindrt=False,
                                counts_early=True, graphs=[small_graph(nan_step=0)])
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped at the end of step 2")
        gradb.run(f"watch TO on {RELU}", "Watchpoint 1")
        gradb.run("next", "step 3")
        gradb.run("next", r"^Watchpoint 1: tensor_overflow .*step 3")
        gradb.expect(r"^Watchpoint 1, step 3, ")
        gradb.run("print .", RELU)
        self.assertNotIn(", of step 2", gradb.text())


class Late(FakeMindSpore):
    """Compiles its second graph after the first step, as an evaluation does."""

    def send_all_graphs(self):
        later, self.graphs = self.graphs[1:], self.graphs[:1]
        super().send_all_graphs()
        self.graphs += later

    def begin_step(self, number):
        if number == 1:
            first = self.graphs.pop(0)
            FakeMindSpore.send_all_graphs(self)
            self.graphs.insert(0, first)
            self.wait_loop()
        super().begin_step(number)


class LateGraphs(Session):
    def test_a_watchpoint_keeps_its_node(self):
        gradb = self.gradb_with()
        trainer = Late(gradb.port, version="2.0.0", backend="Ascend", steps=3, graphs=two_graphs())
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped before the first step")
        gradb.run(f"watch TL max_gt=1.5 on {RELU}", ": 1 node")
        gradb.send("set stop-on-hit off")
        gradb.run("step 2", "end of step 2")
        gradb.run(f"info node {RELU}", "could be 'kernel_graph_0/")
        gradb.run("info watchpoints", rf"TL.*{RELU.rpartition('/')[2]}")
        gradb.run(f"info node {self.qualified(0)}", r"^  watched by  1")
        gradb.run(f"info node {self.qualified(1)}", "graph kernel_graph_1")
        gradb.run("step", "end of step 3")
        gradb.run("info hits -a", rf"step 3 .*{self.qualified(0)}:0")

    def qualified(self, graph):
        return f"kernel_graph_{graph}/{RELU}"


class Simple(FakeMindSpore):
    """As MindInsight's own tests imitate a process: it names no graph, its counter moves only by the steps that a
    reply asks for, and once anything is watched each run ends in hits of watchpoint 1 that repeat no condition."""

    def metadata(self, **more):
        return super().metadata(**more) if more.get("training_done") else fake.pb.Metadata(
            device_name="0", cur_step=self.cur_step, backend=self.backend, cur_node=self.cur_node, **more)

    def lookup(self, tensor):
        return np.arange(1, 7, dtype=np.float32).reshape(2, 3)

    def train(self):
        self.call("SendMetadata", self.metadata(ms_version="1.9.0"))
        self.send_all_graphs()
        self.cur_step, names = 1, [kernel.name for kernel in self.graphs[0].kernels]
        while not self.exit_marked and self.cur_step < 100:
            if not self.obey(self.call("WaitCMD", self.metadata())):
                continue
            if self.level == "node":
                self.cur_node = names[names.index(self.cur_node) + 1] if self.cur_node else names[0]
            else:
                self.cur_step += 1
            if self.watchpoints:
                self.call("SendWatchpointHits", iter([fake.pb.WatchpointHit(id=1, tensor=fake.pbg.TensorProto(
                    node_name=name, slot="0")) for name in (RELU, UPDATE)]))


class SimpleClients(Session):
    def simple(self, graphs):
        gradb = self.gradb_with()
        trainer = Simple(gradb.port, backend="GPU", graphs=graphs)
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped at the end of step")
        return gradb, trainer

    def test_hits_and_the_stop_are_of_one_step(self):
        gradb, _ = self.simple([small_graph()])
        gradb.run("watch TO on all", "Watchpoint 1")
        step = gradb.run("next", r"^Watchpoint 1: tensor_overflow \(TO\), step (\d+)").group(1)
        gradb.expect(rf"^Watchpoint 1, step {step}, {CONV}")
        gradb.run("info hits", rf"step {step} +watchpoint 1")
        gradb.run("info target", rf"^  step +{step}, at {CONV}")
        gradb.run(f"print {CONV}", rf"= {CONV}:0$")
        gradb.run("step 3", rf"^Watchpoint 1, at the end of step {step}")

    def test_hits_that_could_be_of_either_graph(self):
        gradb, trainer = self.simple([small_graph("graph_0"), small_graph("graph_1")])
        gradb.run("watch TO on all", "Watchpoint 1")
        gradb.run("next", "several graphs have a node .*: MindSpore does not say which")
        gradb.expect(rf"^  graph_0/{RELU}:0")
        gradb.expect(rf"^  graph_1/{RELU}:0")
        names = [node.node_name for node in trainer.wait_note("set").watch_nodes]
        self.assertEqual(len(names), len(set(names)))
        gradb.run(f"print graph_0/{RELU}", r"^\[\[1. 2. 3.\]")
        gradb.send("delete 1")
        gradb.run(f"watch TO on graph_1/{RELU}", "1 node")


if __name__ == "__main__":
    harness.main()
