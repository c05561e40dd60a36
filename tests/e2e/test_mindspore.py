# SPDX-License-Identifier: GPL-3.0-or-later
"""The gradb binary against MindSpore processes of every release (tests/e2e/fake_mindspore.py): stock gRPC
clients whose messages protoc makes from our own .proto files."""
import json
import os
import re
import socket
import subprocess
import sys
import threading
import unittest

import grpc
import numpy as np

import harness
import fake_mindspore as fake
from fake_mindspore import SCOPE, FakeMindSpore, Graph, Kernel, small_graph

RELU = f"{SCOPE}/relu-ReLU/ReLU-op2"
CONV = f"{SCOPE}/conv1-Conv2d/Conv2D-op1"
BIAS = f"{SCOPE}/fc1-Dense/BiasAdd-op3"
UPDATE = "Default/optimizer-Momentum/ApplyMomentum-op6"
WEIGHT = f"{SCOPE}/conv1-Conv2d/conv1.weight"


class Session(unittest.TestCase):
    """One gradb; trainers are checked at the end: no reply may ever count as a failure."""

    def setUp(self):
        self.gradb = None
        self.trainers = []

    def tearDown(self):
        for trainer in self.trainers:
            trainer.vanish()
        if self.gradb:
            self.gradb.__exit__()

    def gradb_with(self, *args, **options):
        self.gradb = harness.Gradb(*args, **options)
        self.gradb.wait_listening()
        return self.gradb

    def trainer(self, connected=True, **options):
        trainer = FakeMindSpore(self.gradb.port, **options)
        self.trainers.append(trainer)
        trainer.start()
        if connected:
            trainer.wait_note("wait")
            self.gradb.expect("Stopped before the first step")
        return trainer

    def connect(self, **options):
        """A new gradb, and a training process that has stopped before its first step."""
        return self.gradb_with(), self.trainer(**options)

    def finish(self, trainer, command="continue"):
        self.gradb.run(command, r"training ended")
        trainer.wait_note("done")
        self.assertIsNone(trainer.error)
        self.assertEqual(trainer.bad_replies, [])

    def quit(self, status=0):
        self.gradb.send("quit")
        self.assertEqual(self.gradb.finish(), status)


class SingleGraph(Session):
    def whole_session(self, version, backend):
        gradb, trainer = self.connect(version=version, backend=backend, steps=4)
        self.assertTrue(trainer.matched)
        gradb.run("info graph", "11 nodes, 11 edges")
        gradb.run("step", "Stopped at the end of step 1")
        gradb.run(f"print {WEIGHT}", r"float32 \(2, 3\)")
        gradb.run("step 2", "Stopped at the end of step 3")
        runs = [run for kind, run in trainer.log if kind == "run"]
        self.assertEqual(runs, [("step", "")] * 3)
        self.finish(trainer)
        self.quit()

    def test_every_release(self):
        for version in ("1.1.0", "1.1.1", "1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0", "1.6.1", "1.9.0",
                        "1.10.1", "2.0.0", "2.1.0", "2.2.14", "2.3.1"):
            for backend in ("GPU", "Ascend"):
                with self.subTest(version=version, backend=backend):
                    self.whole_session(version, backend)
                    self.gradb.__exit__()

    def test_values_are_those_of_the_step(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("print conv1.weight", r"^\[\[-1.25 -0.75 -0.25\]")
        gradb.run("step", "end of step 1")
        gradb.run("print conv1.weight", r"^\[\[-1.35 -0.85 -0.35\]")
        gradb.run("print conv1.weight prev", r"^\[\[-1.25 -0.75 -0.25\]")
        gradb.run(f"print {CONV}[0, 1:]", r"^\[1. 1.\]")
        gradb.run("step", "end of step 2")
        gradb.run(f"print {CONV}", r"^\[\[2. 2. 2.\]")
        gradb.run("print conv1.weight prev", r"^\[\[-1.35 -0.85 -0.35\]")
        gradb.run(f"print {BIAS}", r"^\[2. 3. 4. 5.\]")
        gradb.run("print Default/network-WithLossCell/_loss_fn-Loss/Loss-op4:1", r"^\[0 1 2\]")
        levels = {level for kind, view in trainer.log if kind == "view" for level in (view[0],)}
        self.assertEqual(levels, {fake.pb.ViewCMD.base, fake.pb.ViewCMD.value})
        self.finish(trainer)

    def test_old_clients_are_not_asked_for_levels(self):
        gradb, trainer = self.connect(version="1.3.0", backend="Ascend")
        gradb.run("print conv1.weight", r"^\[\[-1.25 -0.75 -0.25\]")
        self.assertEqual([view[0] for kind, view in trainer.log if kind == "view"],
                         [fake.pb.ViewCMD.value])
        self.finish(trainer)

    def test_names_stacks_and_kinds(self):
        gradb, _ = self.connect(version="1.5.0")
        gradb.run(f"node {RELU}", "ReLU")
        gradb.run(f"backtrace {CONV}", r"lenet.py.*42|42.*lenet.py")
        gradb.run("info graph", "2 weights, 1 gradient, 1 activation")
        gradb.run("info params", "conv1.weight")

    def test_zero_size_missing_and_unknown(self):
        extra = [Kernel("Default/empty/Empty-op7", "Empty", (), lambda step: [np.zeros((0, 4), np.float32)]),
                 Kernel("Default/ghost/Ghost-op8", "Ghost", (), None)]
        gradb = self.gradb_with()
        for version in ("1.3.0", "2.0.0"):
            trainer = self.trainer(version=version, backend="Ascend", graphs=[small_graph(extra=extra)])
            gradb.run("step", "end of step 1")
            gradb.run("print Default/empty/Empty-op7", r"\(0, 4\)")
            gradb.run("print Default/ghost/Ghost-op8", "error: .*no value")
            gradb.run("print Default/nowhere", "error: ")
            self.finish(trainer)

    def test_large_tensor_in_pieces(self):
        big = np.arange(2_500_000, dtype=np.float32)
        extra = [Kernel("Default/big/Big-op7", "Big", (), lambda step: [big])]
        gradb = self.gradb_with()
        for version in ("1.2.0", "1.9.0"):
            trainer = self.trainer(version=version, backend="Ascend", graphs=[small_graph(extra=extra)])
            gradb.run("step", "end of step 1")
            gradb.run("print Default/big/Big-op7[-1]", r"^2499999\.")
            gradb.run("print Default/big/Big-op7[786432:786434]", r"^\[786432. 786433.\]")
            self.finish(trainer)

    def test_json(self):
        self.gradb = gradb = harness.Gradb("--json")
        gradb.port = int(gradb.expect(r'"type":"listen".*:(\d+)"').group(1))
        trainer = self.trainer_json()
        gradb.send("watch TO on all")
        record = json.loads(gradb.expect('"type":"watchpoint"').string)
        self.assertEqual((record["number"], record["condition"]), (1, "tensor_overflow"))
        gradb.send("continue")
        record = json.loads(gradb.expect('"type":"hit"').string)
        self.assertEqual((record["watchpoint"], record["node"], record["error"]), (1, RELU, 0))
        trainer.wait_note("hits")

    def trainer_json(self):
        trainer = FakeMindSpore(self.gradb.port, graphs=[small_graph(nan_step=1)], backend="Ascend")
        self.trainers.append(trainer)
        trainer.start()
        self.gradb.expect('"type":"stopped"')
        return trainer


class Nodes(Session):
    def test_gpu_node_stepping_in_every_release(self):
        for version in ("1.1.0", "1.2.0", "1.3.0", "1.5.0", "1.6.0", "2.0.0"):
            with self.subTest(version=version):
                gradb, trainer = self.connect(version=version, steps=6)
                gradb.run("next", "step 1, .*Conv2D-op1")
                gradb.run("next 2", "step 1, .*BiasAdd-op3")
                gradb.run(f"print {BIAS}", r"^\[1. 2. 3. 4.\]")
                gradb.run("step", "end of step 1")
                gradb.run(f"run-to {RELU}", "step 2, .*ReLU-op2")
                gradb.run(f"run-to {RELU}", "step 3, .*ReLU-op2")
                self.assertIn(("node", RELU), [run for kind, run in trainer.log if kind == "run"])
                gradb.run("step", "end of step 3")
                self.finish(trainer)
                gradb.__exit__()

    def test_breakpoints(self):
        gradb, trainer = self.connect(version="1.9.0", steps=3)
        gradb.run(f"break {RELU}", "Breakpoint 1")
        gradb.run("continue", "Breakpoint 1.*step 1, .*ReLU-op2")
        self.assertEqual(trainer.wait_note("run"), ("node", RELU))
        gradb.run(f"break {UPDATE}", "Breakpoint 2")
        gradb.run("continue", "Breakpoint 2.*step 1, .*ApplyMomentum")
        gradb.run("continue", "Breakpoint 1.*step 2, .*ReLU-op2")
        gradb.send("delete 2")
        gradb.run("continue", "Breakpoint 1.*step 3, .*ReLU-op2")
        gradb.send("delete 1")
        self.finish(trainer)

    def test_kernels_that_the_graph_lacks(self):
        extra = [Kernel("Default/hidden/Hidden-op9", "Hidden", (), lambda step: [np.ones(1, np.float32)],
                        in_graph=False)]
        gradb, trainer = self.connect(version="1.9.0", graphs=[small_graph(extra=extra)])
        gradb.run("next 5", "Default/hidden/Hidden-op9")
        self.finish(trainer)

    def test_ascend_has_steps_only(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("next", "error: ")
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_gpu_without_the_actor_runtime(self):
        """Such a process of 1.6 and later counts its steps as the older ones do."""
        gradb, trainer = self.connect(version="1.9.0", mindrt=False, steps=4)
        for step in (1, 2, 3):
            gradb.run("step", f"Stopped at the end of step {step}")
        self.finish(trainer)


class MultiGraph(Session):
    def graphs(self, padding=0):
        second = small_graph("kernel_graph_1", padding=padding)
        for kernel in second.kernels:
            kernel.name = "Second/" + kernel.name
            kernel.inputs = tuple("Second/" + name if "/" in name else name for name in kernel.inputs)
        third = small_graph("kernel_graph_2")
        for kernel in third.kernels:
            kernel.name = "Third/" + kernel.name
            kernel.inputs = tuple("Third/" + name if "/" in name else name for name in kernel.inputs)
        return [small_graph("kernel_graph_0"), second, third]

    def test_chunks_of_every_release(self):
        """A graph over 3 MiB between two others; 1.1 and 1.2 mark and repeat its chunks wrongly."""
        for version in ("1.1.0", "1.2.0", "1.3.0", "1.9.0", "2.0.0"):
            for padding in (0, 4_000_000, 7_000_000):
                with self.subTest(version=version, padding=padding):
                    gradb, trainer = self.connect(version=version, backend="Ascend", graphs=self.graphs(padding))
                    gradb.run("info graph", "33 nodes")
                    gradb.expect("kernel_graph_0.*kernel_graph_1.*kernel_graph_2")
                    gradb.run("step", "end of step 1")
                    gradb.run(f"print Second/{CONV}", r"^\[\[1. 1. 1.\]")
                    self.finish(trainer)
                    gradb.__exit__()

    def test_one_large_graph(self):
        for version in ("1.1.0", "2.0.0"):
            gradb, trainer = self.connect(version=version, backend="Ascend",
                                          graphs=[small_graph(padding=7_000_000)])
            gradb.run("info graph", "11 nodes")
            self.finish(trainer)
            gradb.__exit__()


class Watchpoints(Session):
    def test_hit_stops_and_is_explained(self):
        gradb, trainer = self.connect(version="2.0.0", backend="Ascend", graphs=[small_graph(nan_step=2)])
        gradb.run("watch TO on all", "Watchpoint 1: TO on all: 10 nodes")
        gradb.run("step 3", f"^  {RELU}:0")
        gradb.expect("1 of 3 steps left")
        gradb.expect("end of step 2")
        gradb.run("info hits", r"step 2  watchpoint 1 \(TO\)")
        gradb.run("info watchpoints", "1 +watch +y +process +10 +1 ")
        gradb.send("delete 1")
        self.finish(trainer)
        self.assertEqual(trainer.watchpoints, {})

    def test_gpu_hit_in_the_middle_of_a_step(self):
        for version in ("1.3.0", "1.9.0"):
            gradb, trainer = self.connect(version=version, graphs=[small_graph(nan_step=2)])
            gradb.run(f"watch TO on {RELU}", "Watchpoint 1: .*1 node")
            gradb.run("continue", "step 2, .*ReLU-op2")
            gradb.run(f"print {RELU}", r"nan")
            gradb.send("unwatch 1")
            self.finish(trainer)
            gradb.__exit__()

    def test_parameters_and_actual_values(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("watch WL max_gt=1 on conv1.weight", "Watchpoint 1: WL max_gt=1")
        gradb.run("step", r"conv1.weight:0 max_gt=1 \(1.14999998\)")
        command = trainer.wait_note("set")
        self.assertEqual([p.name for p in command.watch_condition.params],
                         ["abs_mean_gt", "max_gt", "min_gt", "mean_gt"])
        self.assertEqual([p.disabled for p in command.watch_condition.params], [True, False, True, True])
        self.assertEqual([(n.node_name, n.node_type) for n in command.watch_nodes],
                         [(WEIGHT, "Parameter")])

    def test_tolerances_are_swapped_for_old_releases(self):
        """rtol must act as rtol: these weights change by 0.1, the larger ones by less than 20 %."""
        for version, names in (("1.5.0", ["atol", "rtol", "equal_nan"]),
                               ("1.6.0", ["rtol", "atol", "equal_nan"])):
            gradb, trainer = self.connect(version=version, backend="Ascend")
            gradb.run("watch WNC rtol=0.5 on conv1.weight", "Watchpoint 1")
            gradb.run("step", "^  .*conv1.weight:0")
            command = trainer.wait_note("set")
            self.assertEqual([p.name for p in command.watch_condition.params], names)
            gradb.__exit__()

    def test_initial_weights(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("watch WI max_gt=1 on conv1.weight", "Watchpoint 1")
        gradb.run("continue", r"conv1.weight:0 max_gt=1 \(1.25\)")
        gradb.expect("stopped before the first step")
        self.assertEqual(trainer.wait_note("run"), ("recheck", ""))
        gradb.run("step", "end of step 1")
        gradb.run("watch WI", "error: .*only before the first step")
        self.finish(trainer)

    def test_recheck(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("recheck", "error: .*no watchpoints")
        gradb.run("step", "end of step 1")
        gradb.run("watch WL max_gt=1 on conv1.weight", "Watchpoint 1")
        gradb.run("recheck", "^  .*conv1.weight:0")
        gradb.expect("Watchpoint 1, at the end of step 1")
        self.finish(trainer, "unwatch 1\ncontinue")

    def test_what_the_process_cannot_evaluate(self):
        """GPU since 1.6.1 keeps no previous values: gradb compares for itself."""
        gradb, trainer = self.connect(version="1.9.0", steps=6,
                                      graphs=[small_graph()])
        gradb.run("watch WCS abs_mean_update_ratio_lt=0.5 on conv1.weight", "Watchpoint 1")
        gradb.run("continue", "cannot evaluate watchpoint 1 itself: gradb does")
        gradb.expect("conv1.weight:0 could not be checked: no value of the previous step")
        gradb.expect(r"^  .*conv1.weight:0 abs_mean_update_ratio_lt=0.5 \(0.1")
        gradb.expect(r"at the end of step \d")
        self.finish(trainer, "unwatch 1\ncontinue")

    def test_reconnect_gets_the_watchpoints_again(self):
        gradb = self.gradb_with()
        first = self.trainer(version="1.9.0", backend="Ascend")
        gradb.run("watch TO on all", "Watchpoint 1")
        gradb.run("step", "end of step 1")
        first.vanish()
        gradb.expect("lost")
        gradb.run(f"print {CONV}", "error|float32")
        second = self.trainer(version="1.9.0", backend="Ascend", graphs=[small_graph(nan_step=1)])
        command = second.wait_note("set")
        self.assertEqual(len(command.watch_nodes), 10)
        gradb.run("continue", f"^  {RELU}:0")

    def test_set_before_anything_connects(self):
        gradb = self.gradb_with()
        gradb.run("watch TO on all", "pending")
        self.trainer(version="1.9.0", backend="Ascend", graphs=[small_graph(nan_step=1)])
        gradb.run("continue", f"^  {RELU}:0")

    def test_many_nodes_go_out_in_parts(self):
        count = 70_000
        kernels = [Kernel(f"Default/a-rather-long-scope-name/of-many-components/Node-op{i}", "Mul", (),
                          lambda step: [np.ones(1, np.float32)]) for i in range(count)]
        kernels[count - 1].outputs = lambda step: [np.full(1, np.nan if step else 1, np.float32)]
        gradb = self.gradb_with()
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", steps=1,
                                graphs=[Graph("kernel_graph_0", kernels, {})])
        trainer.load_parameters = lambda: None
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped before the first step", 120)
        gradb.run("watch TO on all", f"Watchpoint 1: .*{count:,} nodes")
        sets = [trainer.wait_note("set", count=number) for number in (1, 2, 3)]
        self.assertEqual(sum(len(command.watch_nodes) for command in sets), count)
        self.assertEqual(len({command.id for command in sets}), 3)
        self.assertTrue(all(command.ByteSize() < 4 * 1024 * 1024 for command in sets))
        gradb.send("delete 1")
        deleted = [trainer.wait_note("set", test=lambda command: command.delete, count=number).id
                   for number in (1, 2, 3)]
        self.assertEqual(sorted(deleted), sorted(command.id for command in sets))

    def test_batch_ends_with_status_4(self):
        gradb = self.gradb_with("--batch", "-ex", "watch TO on all", "-ex", "continue")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", graphs=[small_graph(nan_step=2)])
        self.trainers.append(trainer)
        trainer.start()
        self.assertEqual(gradb.finish(), 4)
        self.assertTrue(any(RELU in hit[1] for hits in [v for k, v in trainer.log if k == "hits"] for hit in hits))

    def test_hits_need_not_stop(self):
        gradb = self.gradb_with("-ex", "set stop-on-hit off")
        trainer = self.trainer(version="1.9.0", backend="Ascend", graphs=[small_graph(nan_step=2)])
        gradb.run("watch TO on all", "Watchpoint 1")
        gradb.send("continue")
        gradb.expect(f"^  {RELU}:0")
        gradb.expect("training ended")
        trainer.wait_note("done")
        gradb.run("info hits", r"step 2  watchpoint 1 \(TO\)")

    def test_hits_that_do_not_stop_give_status_4_too(self):
        gradb = self.gradb_with("--batch", "-ex", "set stop-on-hit off", "-ex", "watch TO on all",
                                "-ex", "continue")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend",
                                graphs=[small_graph(nan_step=2)])
        self.trainers.append(trainer)
        trainer.start()
        self.assertEqual(gradb.finish(), 4)
        trainer.wait_note("done")

    def test_wrong_conditions(self):
        gradb, _ = self.connect(version="1.9.0")
        gradb.run("watch", "error: ")
        gradb.run("watch XY", "error: .*no condition")
        gradb.run("watch TL", "error: .*abs_mean_gt")
        gradb.run("watch TL max_gt=many", "error: .*\"many\" is not a number")
        gradb.run("watch TL max_gt=1 min_gt=1", "error: .*two")
        gradb.run("watch TR range_percentage_lt=5", "error: .*range_start_inclusive")
        gradb.run("watch TZ zero_percentage_ge=101", "error: .*0 to 100")
        gradb.run("watch OO", "error: .*Ascend")
        gradb.run("watch TO on", "error: ")
        gradb.run("info watchpoints", "No watchpoints")


class Versions(Session):
    def test_unknown_versions_are_taken_with_a_warning(self):
        for spelled in ("9.9.9", "2.4.0", "", "rubbish"):
            gradb = self.gradb_with()
            trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", send_version=spelled)
            self.trainers.append(trainer)
            trainer.start()
            gradb.expect("warning: .*(version|outside)")
            gradb.expect("Stopped before the first step")
            self.assertTrue(trainer.matched)
            gradb.run("step", "end of step 1")
            self.finish(trainer)
            gradb.__exit__()

    def test_strict(self):
        gradb = self.gradb_with("-ex", "set ms-version-check strict")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend")
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("does not match 2.0")
        gradb.expect("Stopped before the first step")
        self.assertIs(trainer.matched, False)
        gradb.run("step", "end of step 1")
        self.finish(trainer)
        trainer = self.trainer(version="2.0.0", backend="Ascend")
        self.assertTrue(trainer.matched)
        self.finish(trainer)


class Lives(Session):
    def test_wait_without_a_word_before(self):
        """A WaitCMD without metadata and graph is held; the user may run or end it."""
        gradb = self.gradb_with()
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", introduce=False,
                                send_graphs=False)
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("without having sent a graph")
        gradb.expect("Stopped before the first step")
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_kill(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend", steps=50)
        gradb.run("step", "end of step 1")
        gradb.run("kill", "ended")
        trainer.wait_note("exit")
        trainer.wait_note("done")

    def test_interrupt(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend", steps=10**9)
        gradb.send("continue &")
        trainer.wait_note("step", count=5)
        gradb.run("interrupt", "will stop at the end of step")
        gradb.expect(r"Interrupt.*end of step \d+|end of step \d+")
        gradb.run("kill", "ended")
        trainer.wait_note("exit")

    def test_detach(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend", steps=40, graphs=[small_graph(nan_step=2)])
        gradb.run("watch TO on all", "Watchpoint 1")
        trainer.wait_note("set")
        gradb.run("detach", "[Dd]etached")
        trainer.wait_note("done")
        self.assertEqual(trainer.completed, 40)
        self.assertEqual(trainer.watchpoints, {})
        self.assertEqual(trainer.bad_replies, [])

    def test_second_session_after_the_first(self):
        gradb = self.gradb_with()
        for _ in range(3):
            trainer = self.trainer(version="1.6.0", backend="Ascend", steps=2)
            gradb.run("step", "end of step 1")
            self.finish(trainer)

    def test_two_at_once(self):
        gradb = self.gradb_with()
        first = self.trainer(version="1.9.0", backend="Ascend", device=0)
        second = self.trainer(version="1.5.0", backend="GPU", device=1)
        gradb.run("info ranks", "1")
        gradb.send("rank 2")
        gradb.run("next", "step 1, .*Conv2D-op1")
        gradb.send("rank 1")
        gradb.run("step", "end of step 1")
        gradb.run(f"print {CONV}", r"^\[\[1. 1. 1.\]")
        self.finish(first)
        gradb.send("rank 2")
        self.finish(second)

    def test_sixty_four_at_once(self):
        gradb = self.gradb_with()
        for device in range(64):
            trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", device=device)
            self.trainers.append(trainer)
        for trainer in self.trainers:
            trainer.start()
        for trainer in self.trainers:
            trainer.wait_note("wait")
        for _ in self.trainers:
            gradb.expect("[Ss]topped before the first step")
        gradb.run("info ranks", "64")
        gradb.run("step", "end of step 1")
        self.assertTrue(all(trainer.error is None for trainer in self.trainers))

    def test_vanishes(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        gradb.run("step", "end of step 1")
        gradb.run(f"print {CONV}", r"^\[\[1. 1. 1.\]")
        trainer.vanish()
        gradb.expect("lost")
        gradb.run(f"print {CONV}", r"^\[\[1. 1. 1.\]")  # what was learned stays
        gradb.run("info graph", "11 nodes")
        gradb.run("step", "error: ")

    def test_vanishes_in_a_tensor(self):
        gradb = self.gradb_with()
        env = dict(os.environ, MS_DEBUGGER_HOST="127.0.0.1", MS_DEBUGGER_PORT=str(gradb.port))
        with subprocess.Popen([sys.executable, fake.__file__, "--backend", "Ascend", "--version", "1.9.0",
                               "--break-tensor", "vanish"], env=env) as process:
            gradb.expect("Stopped before the first step")
            gradb.run("print conv1.weight", "error: .*(closed|lost|is unavailable)")
            self.assertEqual(process.wait(60), 9)
        gradb.run("info graph", "11 nodes")
        trainer = self.trainer(version="1.9.0", backend="Ascend")
        self.finish(trainer)

    def test_tensor_bytes_that_do_not_fit(self):
        for how, pattern in (("short", "21 bytes, but float32"), ("long", "28 bytes, but float32")):
            gradb, trainer = self.connect(version="1.9.0", backend="Ascend", break_tensor=how)
            gradb.run("print conv1.weight", f"error: .*{pattern}")
            trainer.break_tensor = None
            gradb.run("print conv1.weight", r"^\[\[-1.25 -0.75 -0.25\]")
            self.finish(trainer)
            gradb.__exit__()

    def test_heartbeats_before_all_else_and_none_after(self):
        gradb = self.gradb_with()
        for period in (5, 1):
            trainer = self.trainer(version="1.9.0", backend="Ascend", heartbeat=period)
            self.assertEqual(trainer.log[0][0], "heartbeat")
            gradb.run("info target", f"every {period} s")
            self.finish(trainer)

    def test_a_process_that_reuses_memory(self):
        """With MS_DEBUGGER_PARTIAL_MEM=1 it keeps what was watched before its first step, and gradb says so."""
        self.assertIn("MS_DEBUGGER_PARTIAL_MEM", (harness.SOURCE / "docs" / "mindspore.md").read_text(encoding="utf-8"))
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend", partial=True)
        gradb.run("step", "end of step 1")
        gradb.run(f"print {RELU}", r"error: .*MS_DEBUGGER_PARTIAL_MEM=1 keeps only what was watched before")
        self.finish(trainer)


class Strangers(Session):
    def address(self):
        """One of this machine's that is not loopback."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # nothing is sent
            except OSError:
                self.skipTest("this machine has no other address")
            return probe.getsockname()[0]

    def test_processes_of_other_hosts_cannot_show_a_token(self):
        host = self.address()
        gradb = self.gradb_with("-ex", "set token secret", listen="0.0.0.0:0")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", host=host)
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("warning: .*refused a MindSpore process on another host")
        trainer.wait_note("failed", test=lambda error: "PERMISSION_DENIED" in error)
        gradb.send("set ms-remote on")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend", host=host)
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped before the first step")
        self.finish(trainer)


class BadInput(Session):
    def call(self, channel, method, requests):
        stream = isinstance(requests, list)
        make = channel.stream_unary if stream else channel.unary_unary
        return make(fake.SERVICE + method, request_serializer=lambda data: data,
                    response_deserializer=lambda data: data)(iter(requests) if stream else requests)

    def test_garbage_in_every_call(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        with grpc.insecure_channel(f"127.0.0.1:{gradb.port}") as channel:
            for method in ("WaitCMD", "SendMetadata", "SendHeartbeat"):
                with self.assertRaises(grpc.RpcError) as caught:
                    self.call(channel, method, b"\xff\xff\xff")
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            for method in ("SendGraph", "SendMultiGraphs", "SendTensorBase", "SendTensorStats",
                           "SendWatchpointHits"):
                with self.assertRaises(grpc.RpcError) as caught:
                    self.call(channel, method, [b"\x0a\xff\x01"])
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertEqual(self.call(channel, "SendTensors", [b"\xff\xff"]), b"")  # nobody asked
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_one_connection_cannot_make_processes_without_end(self):
        gradb, trainer = self.connect(version="1.9.0", backend="Ascend")
        codes = []
        with grpc.insecure_channel(f"127.0.0.1:{gradb.port}") as channel:
            for device in range(200):
                hello = fake.pb.Metadata(device_name=f"{device}:1", training_done=device % 2 == 0)
                try:
                    self.call(channel, "SendMetadata", hello.SerializeToString())
                    codes.append(None)
                except grpc.RpcError as error:
                    codes.append(error.code())
        self.assertEqual(codes[:100], [None] * 100)
        self.assertEqual(codes[198], None)  # the end of one that nobody knows is no news
        self.assertEqual(codes[199], grpc.StatusCode.RESOURCE_EXHAUSTED)
        gradb.run("session 1", "")
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_graph_that_is_none(self):
        gradb = self.gradb_with()
        original = fake.graph_proto
        self.addCleanup(setattr, fake, "graph_proto", original)
        fake.graph_proto = lambda graph, version: original(graph, version)[:-7]
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend")
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("warning: .*rejected a graph of .* bytes")
        gradb.expect("Stopped before the first step")
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_cyclic_graph_missing_nodes_absurd_shapes(self):
        def strange(graph, version):
            proto = fake.pbg.GraphProto.FromString(original(graph, version))
            proto.node[0].input.add(name="3")      # a cycle
            proto.node[1].input.add(name="777")    # nobody
            proto.node[1].input.add(name="cst99")
            for _ in range(80):
                proto.node[2].output_type.tensor_type.shape.dim.add().size = 2**62
            proto.node[3].output_type.tensor_type.shape.dim.add().size = -5
            return proto.SerializeToString()

        original = fake.graph_proto
        self.addCleanup(setattr, fake, "graph_proto", original)
        fake.graph_proto = strange
        gradb = self.gradb_with()
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend")
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("warning: .*2 inputs refer to missing nodes")
        gradb.expect("Stopped before the first step")
        gradb.run(f"inputs {RELU}", "Conv2D-op1")
        gradb.run("info graph", "11 nodes")
        gradb.run("step", "end of step 1")
        self.finish(trainer)

    def test_graph_over_the_limit(self):
        gradb = self.gradb_with("-ex", "set max-graph 1MiB")
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend",
                                graphs=[small_graph(padding=2_000_000)])
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("warning: .*max-graph")

    def test_tensor_over_the_limit(self):
        big = np.zeros(1_000_000, np.float32)
        extra = [Kernel("Default/big/Big-op7", "Big", (), lambda step: [big])]
        for version in ("1.3.0", "1.9.0"):
            gradb = self.gradb_with("-ex", "set max-tensor 1MiB")
            trainer = self.trainer(version=version, backend="Ascend", graphs=[small_graph(extra=extra)])
            gradb.run("step", "end of step 1")
            gradb.run("print Default/big/Big-op7", "error: .*max-tensor")
            self.finish(trainer)
            gradb.__exit__()

    def test_a_value_that_would_end_the_training_is_not_asked_for(self):
        gradb = self.gradb_with()
        extra = [Kernel("Default/big/Big-op7", "Big", (), lambda step: [np.zeros(4, np.float32)])]
        trainer = FakeMindSpore(gradb.port, version="1.9.0", backend="Ascend",
                                graphs=[small_graph(extra=extra)])
        honest = trainer.base_of
        trainer.base_of = lambda tensor: fake.pb.TensorBase(
            data_type=11, shape=[600_000_000], data_size=2_400_000_000) \
            if "Big" in tensor.node_name else honest(tensor)
        self.trainers.append(trainer)
        trainer.start()
        gradb.expect("Stopped before the first step")
        gradb.run("step", "end of step 1")
        gradb.run("print Default/big/Big-op7", "2145386496")
        self.assertNotIn(fake.pb.ViewCMD.value, [view[0] for kind, view in trainer.log if kind == "view"])
        gradb.run("stats Default/big/Big-op7", "zeros +4")
        self.finish(trainer)


class Gate(FakeMindSpore):
    """It waits at the beginning of a step until it is let through."""

    def __init__(self, *arguments, gate, **options):
        super().__init__(*arguments, **options)
        self.gate, self.through = gate, threading.Event()

    def begin_step(self, number):
        if number == self.gate:
            self.note("gate")
            self.through.wait(60)
        super().begin_step(number)


class Steps(Session):
    """The step that is shown is the newest that was reported, whatever the state."""

    def target(self):
        return json.loads(self.gradb.run("info target", '"type":"target"').string)

    def start(self, **options):
        self.gradb = harness.Gradb("--json")
        self.gradb.port = int(self.gradb.expect(r'"type":"listen".*:(\d+)"').group(1))
        trainer = Gate(self.gradb.port, **options)
        self.trainers.append(trainer)
        trainer.start()
        self.gradb.expect('"type":"stopped"')
        return trainer

    def test_while_it_runs_and_at_the_end(self):
        for version, backend in (("1.1.0", "GPU"), ("1.3.0", "GPU"), ("1.5.0", "Ascend"), ("1.9.0", "GPU"),
                                 ("2.3.1", "Ascend")):
            with self.subTest(version=version, backend=backend):
                trainer = self.start(version=version, backend=backend, steps=30, gate=20)
                self.gradb.run("step 2", '"type":"run".*"step":2')
                self.gradb.send("continue &")
                trainer.wait_note("gate")
                last = 19 if backend == "GPU" and version in ("1.3.0",) else 20
                harness.wait_for("step 20", lambda: self.target()["step"] >= last)
                self.assertEqual(self.target()["state"], "running")
                ranks = json.loads(self.gradb.run("info ranks", '"type":"ranks"').string)
                self.assertEqual(ranks["ranks"][0]["step"], self.target()["step"])
                trainer.through.set()
                self.assertEqual(json.loads(self.gradb.expect('"type":"finished"').string)["step"], 30)
                self.assertEqual(self.target()["step"], 30)
                self.gradb.__exit__()

    def test_when_it_vanishes(self):
        trainer = self.start(version="1.9.0", backend="Ascend", steps=30, gate=4)
        self.gradb.send("continue &")
        trainer.wait_note("gate")
        trainer.vanish()
        self.assertEqual(json.loads(self.gradb.expect('"type":"lost"').string)["step"], 4)
        self.assertEqual((self.target()["state"], self.target()["step"]), ("lost", 4))
        trainer.through.set()

    def test_facts_have_names_of_their_own(self):
        gradb, _ = self.connect(version="1.9.0", backend="GPU")
        gradb.run("step", "end of step 1")
        gradb.send("info target")
        gradb.run("echo END\\n", "END")
        names = [line[2:20].strip() for line in gradb.lines if line.startswith("  ")]
        self.assertIn("step", names)
        self.assertEqual(len(names), len(set(names)), names)

    def test_order_of_the_nodes(self):
        gradb, trainer = self.connect(version="1.9.0", backend="GPU")
        rows = {}
        gradb.send("info nodes -a")
        gradb.run("echo END\\n", "END")
        for line in gradb.lines:
            match = re.match(r" *(\d+)  .*?(\S+-op\d+)", line)
            if match:
                rows[match[2]] = int(match[1])
        names = [kernel.name for kernel in trainer.graphs[0].kernels]
        self.assertEqual(sorted(rows, key=rows.get), names)
        self.assertEqual(sorted(rows.values()), list(range(len(names))))

    def test_source_that_is_elsewhere(self):
        """The stacks have the text of their lines; the file itself is on another machine."""
        gradb, _ = self.connect(version="1.9.0", backend="GPU")
        gradb.run("annotate lenet.py", "^cannot read /src/lenet.py; these lines were sent with the stacks:")
        gradb.expect(r"^    1 \|   42  x = self\.conv1\(x\)$")
        gradb.expect(r"^    1 \|   43  x = self\.relu\(x\)$")
        gradb.run("list lenet.py:42", "^error: cannot read /src/lenet.py: .*copy it below the current directory")

    def test_rank_of_a_process_alone(self):
        gradb, _ = self.connect(version="1.9.0", backend="GPU")
        gradb.run("rank 0", r"^\[Training process 1, rank 0")
        self.trainer(version="1.9.0", backend="GPU", device=1)
        gradb.run("session 2", r"^\[Training process 2, rank 1")
        gradb.run("rank 0", r"^\[Training process 1, rank 0")
        gradb.run("rank 5", "^error: ")



if __name__ == "__main__":
    harness.main()
