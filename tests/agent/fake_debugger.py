# SPDX-License-Identifier: GPL-3.0-or-later
"""A debugger for libgradb's tests, written with the stock gRPC library, and a test case that drives the small
training run of agent_trainer.c with it."""
import concurrent.futures
import os
import pathlib
import queue
import subprocess
import sys
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

TRAINER = harness.BUILD / "tests" / "agent" / "agent_trainer"
W, A, B, EAGER, RELU, RARE, EXTRA = 1, 2, 3, 4, 5, 6, 7
MASK = EXTRA  # of a trainer without extra nodes


pb, = harness.load_messages("gradb_v1")
AT_END, AT_ONCE = pb.WatchPlan.STEP_END, pb.WatchPlan.BEFORE_NEXT_NODE


class Debugger(grpc.GenericRpcHandler):
    """Serves one trainer. `heard` gets what it says; `say` answers."""

    def __init__(self):
        self.heard, self.out = queue.Queue(), queue.Queue()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        self.server.add_generic_rpc_handlers((self,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details):
        if details.method != "/gradb.v1.Trainer/Attach":
            return None
        return grpc.stream_stream_rpc_method_handler(self.attach, pb.FromTrainer.FromString,
                                                     pb.ToTrainer.SerializeToString)

    def attach(self, requests, context):
        def listen():
            try:
                for message in requests:
                    self.heard.put(message)
            except grpc.RpcError:
                pass
            self.heard.put(None)
            self.out.put(None)
        concurrent.futures.ThreadPoolExecutor(1).submit(listen)
        yield from iter(self.out.get, None)

    def say(self, **member):
        self.out.put(pb.ToTrainer(**member))

    def hear(self, member):
        while True:
            message = self.heard.get(timeout=harness.DEADLINE)
            if message is None:
                raise AssertionError(f"the trainer ended before {member} came")
            if message.WhichOneof("msg") == member:
                return getattr(message, member)

    def hear_any(self, *members):
        """The name and the content of the next message of these."""
        while True:
            message = self.heard.get(timeout=harness.DEADLINE)
            kind = message.WhichOneof("msg") if message else None
            if kind is None:
                raise AssertionError(f"the trainer ended before one of {members} came")
            if kind in members:
                return kind, getattr(message, kind)

    def never(self, member, until):
        """The next message `until`; fails when `member` comes before."""
        while True:
            message = self.heard.get(timeout=harness.DEADLINE)
            kind = message.WhichOneof("msg") if message else None
            if kind == until:
                return getattr(message, until)
            if kind in (member, None):
                raise AssertionError(f"{kind} came before {until}: {message}")


class Case(unittest.TestCase):
    """self.debugger is there; start() starts the trainer."""

    def setUp(self):
        self.debugger = Debugger()
        self.addCleanup(self.debugger.server.stop, 0)
        self.trainer = None

    def start(self, steps=6, extra=0, port=0, threads=1, **welcome):
        self.trainer = subprocess.Popen([str(TRAINER), f"127.0.0.1:{port or self.debugger.port}",
                                         str(steps), str(extra)],
                                        env=dict(os.environ, GRADB_THREADS=str(threads)))
        self.addCleanup(self.trainer.kill)
        hello = self.debugger.hear("hello")
        self.assertEqual((hello.version_min, hello.version_max), (1, 1))
        values = dict(version=1, stop=True, debugger_id=b"0123456789abcdef", keepalive=20)
        values.update(welcome)
        self.debugger.say(welcome=pb.Welcome(**values))
        return hello

    def first_stop(self, **kwargs):
        hello = self.start(**kwargs)
        graph = self.debugger.hear("graph")
        self.assertEqual([n.name for n in graph.nodes][:6],
                         ["net/w", "net/a", "net/b", "net/eager", "net/relu", "net/rare"])
        stopped = self.debugger.hear("stopped")
        self.assertEqual((stopped.reason, stopped.step), (pb.STOP_CONNECTED, 0))
        return hello

    def run_on(self, kind=pb.Run.CONTINUE, **fields):
        self.debugger.say(run=pb.Run(kind=kind, **fields))
        self.debugger.hear("running")

    def ends(self, status=0):
        self.assertEqual(self.debugger.hear("goodbye").reason, pb.Goodbye.FINISHED)
        self.assertEqual(self.trainer.wait(timeout=harness.DEADLINE), status)

    def plan(self, *nodes, when=AT_END, plan=1, hold=False, every=0, triggers=(), **options):
        items = [pb.WatchItem(node=n, options=pb.StatsOptions(**options), report_if=triggers)
                 for n in nodes]
        self.debugger.say(watch_plan=pb.WatchPlan(id=plan, items=items, when=when, hold=hold, every=every))
