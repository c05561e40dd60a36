# SPDX-License-Identifier: GPL-3.0-or-later
"""gradb.v1 as an outsider sees it: a trainer written from src/proto/gradb_v1.proto and docs/protocol.md with
the stock gRPC library, against the real gradb. And trainers that break the rules."""
import concurrent.futures
import hashlib
import hmac
import json
import os
import pathlib
import queue
import re
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import unittest

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402


pb, = harness.load_messages("gradb_v1")
WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


class Trainer:
    """One call of Trainer.Attach. What the debugger says is in a queue, call by call."""

    def __init__(self, port, host="127.0.0.1"):
        self.channel = grpc.insecure_channel(f"{host}:{port}", options=(
            ("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)))
        self.nonce, self.theirs = os.urandom(32), b""
        self.out = queue.Queue()
        self.heard = queue.Queue()
        attach = self.channel.stream_stream("/gradb.v1.Trainer/Attach",
                                            request_serializer=lambda m: m if isinstance(m, bytes)
                                            else m.SerializeToString(),
                                            response_deserializer=pb.ToTrainer.FromString)
        self.call = attach(iter(self.out.get, None))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        try:
            for message in self.call:
                self.heard.put(message)
        except grpc.RpcError:
            pass
        self.heard.put(None)

    def say(self, **member):
        self.out.put(pb.FromTrainer(**member))

    def say_bytes(self, data):
        self.out.put(data)

    def hear(self, member):
        """The next message of that kind; others are skipped. None: the call has ended."""
        while True:
            message = self.heard.get(timeout=harness.DEADLINE)
            if message is None:
                return None
            if message.WhichOneof("msg") == member:
                return getattr(message, member)

    def hello(self, **fields):
        values = dict(version_min=1, version_max=1, framework="outsider", framework_version="7",
                      agent="test", device="abacus", host="there", program="train.py", pid=4242)
        values.update(fields)
        self.say(hello=pb.Hello(**values))

    def mac(self, token, role):
        """docs/protocol.md, "Token"."""
        return hmac.new(token.encode(), b"gradb.v1 " + role + self.nonce + self.theirs, hashlib.sha256).digest()

    def challenge(self):
        self.say(authenticate=pb.Authenticate(nonce=self.nonce))
        challenge = self.hear("challenge")
        self.theirs = challenge.nonce
        return challenge

    def prove(self, token):
        self.challenge()
        self.say(proof=pb.Proof(mac=self.mac(token, b"trainer")))

    def status(self):
        """Waits for the end of the call."""
        while self.heard.get(timeout=harness.DEADLINE) is not None:
            pass
        return self.call.code(), self.call.details()

    def graph(self, **fields):
        nodes = [pb.Node(id=1, name="net/weight", type="Parameter", kind=pb.KIND_WEIGHT,
                         outputs=[pb.Output(dtype=pb.FLOAT32, shape=[3, 4])],
                         frames=[pb.Frame(file="train.py", line=7, function="build")]),
                 pb.Node(id=2, name="net/MatMul", type="MatMul", phase=pb.PHASE_FORWARD, order=2,
                         inputs=[pb.Input(node=1)],
                         outputs=[pb.Output(dtype=pb.FLOAT32, shape=[-1, 4])])]
        self.say(graph=pb.GraphChunk(graph="net", nodes=nodes, commit=True, **fields))

    def stand(self, **fields):
        values = dict(reason=pb.STOP_CONNECTED, step=1, at_step_end=True)
        values.update(fields)
        self.say(stopped=pb.Stopped(**values))

    def answer_fetch(self, value, piece=16):
        """Answers the next Fetch with a value, in small pieces."""
        fetch = self.hear("fetch")
        data = value.tobytes()
        self.say(tensor_begin=pb.TensorBegin(request=fetch.request, dtype=pb.FLOAT32, shape=value.shape,
                                             bytes=len(data), step=1))
        for at in range(0, len(data), piece):
            self.say(tensor_data=pb.TensorData(request=fetch.request, offset=at,
                                               data=data[at:at + piece]))
        return fetch

    def close(self):
        self.out.put(None)
        self.call.cancel()
        self.channel.close()


class Case(unittest.TestCase):
    def setUp(self):
        self.gradb = harness.Gradb("--json", "-nx")
        self.addCleanup(self.gradb.__exit__)
        self.gradb.send("info target")
        self.port = int(self.gradb.expect(r'"address":"[^"]*:(\d+)"').group(1))

    def trainer(self, port=None, **kwargs):
        trainer = Trainer(port or self.port, **kwargs)
        self.addCleanup(trainer.close)
        return trainer

    def record(self, kind, **fields):
        """The next JSON record of a type (and with those fields)."""
        while True:
            line = self.gradb.expect(rf'"type":"{kind}"').string
            found = json.loads(line)
            if all(found.get(name) == value for name, value in fields.items()):
                return found

    def standing(self, **hello):
        """A trainer that stands after step 1, and that gradb knows of."""
        trainer = self.trainer()
        trainer.hello(**hello)
        self.assertIsNotNone(trainer.hear("welcome"))
        trainer.graph()
        trainer.stand()
        self.record("stopped")
        return trainer


class Session(Case):
    """What a well-behaved trainer can do."""

    def test_whole_session(self):
        trainer = self.trainer()
        trainer.hello(rank=3, world_size=8, capabilities=[pb.CAPABILITY_NEXT, pb.CAPABILITY_STOP])
        welcome = trainer.hear("welcome")
        self.assertEqual(welcome.version, 1)
        self.assertEqual(len(welcome.debugger_id), 16)
        self.assertTrue(welcome.stop)
        self.assertFalse(welcome.shm)
        self.assertGreaterEqual(welcome.max_message, 1 << 20)
        trainer.graph()
        trainer.stand(reason=pb.STOP_CONNECTED, step=0)
        stopped = self.record("stopped")
        self.assertEqual((stopped["reason"], stopped["step"]), ("connected", 0))
        self.gradb.send("info target")
        target = self.record("target")
        self.assertEqual((target["framework"], target["rank"], target["world_size"], target["pid"]),
                         ("outsider", 3, 8, 4242))

        self.gradb.send("step 2")
        run = trainer.hear("run")
        self.assertEqual((run.kind, run.count), (pb.Run.STEP, 2))
        trainer.say(running=pb.Running(step=1))
        trainer.say(scalars=pb.Scalars(values=[pb.Scalar(name="loss", value=0.5, step=2)]))
        trainer.say(log=pb.Log(lines=["hello from the trainer"]))
        trainer.stand(reason=pb.STOP_STEP, step=2)
        self.assertEqual(self.record("stopped")["scalars"], {"loss": 0.5})
        self.gradb.send("info log")
        self.gradb.expect("hello from the trainer")

        self.gradb.send("break net/MatMul")
        self.assertEqual(list(trainer.hear("breakpoints").nodes), [2])
        self.gradb.send("continue")
        self.assertEqual(trainer.hear("run").kind, pb.Run.CONTINUE)
        trainer.stand(reason=pb.STOP_BREAKPOINT, step=3, at_step_end=False, node=2,
                      phase=pb.PHASE_FORWARD)
        stopped = self.record("stopped")
        self.assertEqual((stopped["reason"], stopped["node"], stopped["phase"]),
                         ("breakpoint", "net/MatMul", "forward"))
        self.gradb.send("next 3")
        run = trainer.hear("run")
        self.assertEqual((run.kind, run.count), (pb.Run.NEXT, 3))
        trainer.stand(reason=pb.STOP_NODE, step=3, at_step_end=False, node=2)
        self.record("stopped")
        self.gradb.send("kill")
        self.assertIsNotNone(trainer.hear("stop_training"))
        trainer.say(goodbye=pb.Goodbye(text="as asked"))
        self.assertIn("as asked", self.record("finished")["text"])
        self.assertEqual(trainer.status()[0], grpc.StatusCode.OK)

    def test_values(self):
        trainer = self.standing()
        self.gradb.send("print net/weight[1]")
        fetch = trainer.answer_fetch(WEIGHT)
        self.assertEqual(len(fetch.slice), 0)  # no CAPABILITY_SLICE: the debugger cuts
        self.assertEqual(self.record("tensor")["values"], WEIGHT[1].tolist())

    def test_slices_are_cut_by_a_trainer_that_can(self):
        trainer = self.standing(capabilities=[pb.CAPABILITY_SLICE])
        self.gradb.send("print net/weight[-1, 3:0:-2, None, ...]")
        fetch = trainer.answer_fetch(WEIGHT[-1, 3:0:-2, None, ...])
        kinds = [(i.kind, i.start if i.has_start or i.kind == pb.SliceItem.INDEX else None,
                  i.stop if i.has_stop else None, i.step if i.has_step else None)
                 for i in fetch.slice]
        self.assertEqual(kinds, [(pb.SliceItem.INDEX, -1, None, None),
                                 (pb.SliceItem.RANGE, 3, 0, -2),
                                 (pb.SliceItem.NEWAXIS, None, None, None),
                                 (pb.SliceItem.ELLIPSIS, None, None, None)])
        self.assertEqual(self.record("tensor")["values"], [[11.0], [9.0]])

    def test_statistics_by_the_trainer(self):
        trainer = self.standing(capabilities=[pb.CAPABILITY_STATS])
        self.gradb.send("stats net/weight")
        asked = trainer.hear("stats")
        self.assertEqual((asked.node, asked.slot), (1, 0))
        trainer.say(stats=pb.StatsReply(request=asked.request, value=pb.TensorStats(
            node=1, dtype=pb.FLOAT32, shape=[3, 4], step=1,
            stats=pb.Stats(count=12, max=123456.0, min=-1.0))))
        self.gradb.expect("123456")

    def test_statistics_of_a_trainer_that_cannot(self):
        trainer = self.standing()
        self.gradb.send("stats net/weight")
        trainer.answer_fetch(WEIGHT)
        self.gradb.expect(r"\b11\b")

    def test_request_errors_are_told(self):
        trainer = self.standing()
        self.gradb.send("print net/MatMul")
        fetch = trainer.hear("fetch")
        trainer.say(error=pb.RequestError(request=fetch.request, code=pb.RequestError.NO_VALUE,
                                          text="it has not run yet"))
        self.gradb.expect("it has not run yet")

    def test_detach(self):
        trainer = self.standing()
        self.gradb.send("detach")
        self.assertIsNotNone(trainer.hear("detach"))
        self.assertEqual(trainer.status()[0], grpc.StatusCode.OK)

    def test_the_same_debugger_does_not_take_a_detached_trainer(self):
        first = self.trainer()
        first.hello()
        welcome = first.hear("welcome")
        second = self.trainer()
        second.hello(detached_from=welcome.debugger_id)
        self.assertEqual(second.status()[0], grpc.StatusCode.FAILED_PRECONDITION)

    def test_what_is_not_known_is_ignored(self):
        trainer = self.standing()
        trainer.say_bytes(b"\xd2\x0f\x03abc")  # field 250: a member of the oneof of tomorrow
        trainer.say(heartbeat=pb.Heartbeat(sequence=1, step=1))
        trainer.say_bytes(pb.FromTrainer(heartbeat=pb.Heartbeat()).SerializeToString() +
                          b"\xc2\x3e\x01x")
        trainer.say(tensor_data=pb.TensorData(request=999, data=b"nobody asked"))
        trainer.say(stats=pb.StatsReply(request=998))
        trainer.say(event=pb.Event(kind="skipped-step", text="the scale was halved", step=1))
        trainer.say(watch_report=pb.WatchReport(id=5, holding=True))
        verdict = trainer.hear("watch_verdict")
        self.assertEqual((verdict.report, verdict.stop), (5, False))
        self.gradb.send("print net/weight[0, 0]")
        trainer.answer_fetch(WEIGHT)
        self.assertEqual(self.record("tensor")["step"], 1)

    def test_graph_that_grows(self):
        trainer = self.standing()
        late = pb.Node(id=3, name="net/ReLU", type="ReLU", inputs=[pb.Input(node=4), pb.Input(node=2)],
                       outputs=[pb.Output(dtype=pb.FLOAT32, shape=[3, 4])])
        trainer.say(graph=pb.GraphChunk(graph="net", nodes=[late]))
        loop = pb.Node(id=4, name="net/Loop", type="Loop", inputs=[pb.Input(node=3), pb.Input(node=77)],
                       outputs=[pb.Output(dtype=pb.FLOAT32)])
        twin = pb.Node(id=5, name="net/Loop", type="Loop", outputs=[pb.Output(dtype=pb.FLOAT32)])
        trainer.say(graph=pb.GraphChunk(graph="net", nodes=[loop, twin], commit=True, more_inputs=[
            pb.MoreInputs(node=1, inputs=[pb.Input(node=3)])]))
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("inputs -d 8 net/Loop")  # a cycle, and a producer that does not exist
        self.gradb.expect("net/ReLU")
        self.gradb.send("info node net/Loop#5")
        self.gradb.expect("net/Loop#5")


    def test_compiled_code_is_shown(self):
        trainer = self.standing()
        node = pb.Node(id=3, name="compiled/f/MatMul", type="MatMul", kind=pb.KIND_COMPILED, inputs=[pb.Input(node=1)],
                       attrs=[pb.Attr(name="ir name", value="Default/MatMul-op0")])
        trainer.say(graph=pb.GraphChunk(graph="net", nodes=[node], commit=True))
        trainer.say(graph=pb.GraphChunk(graph="net", commit=True, new_attrs=[
            pb.NewAttrs(node=3, attrs=[pb.Attr(name="counterpart", value="net/MatMul")]), pb.NewAttrs(node=9)]))
        trainer.stand(step=2)
        self.record("stopped", step=2)
        self.gradb.send("info node Default/MatMul-op0")
        record = self.record("node", node="compiled/f/MatMul")
        self.assertEqual((record["kind"], record["inputs"][0]["node"], record["attributes"]), (
            "compiled", "net/weight", {"ir name": "Default/MatMul-op0", "counterpart": "net/MatMul"}))
        self.gradb.send("print compiled/f/MatMul")  # and nobody is asked
        self.gradb.expect("is inside compiled code and has no values; its counterpart: net/MatMul")

    def test_the_newest_step_is_shown(self):
        trainer = self.standing()
        self.gradb.send("continue &")
        trainer.hear("run")
        trainer.say(running=pb.Running(step=1))
        for step, message in ((7, dict(heartbeat=pb.Heartbeat(sequence=1, step=7))),
                              (8, dict(scalars=pb.Scalars(values=[pb.Scalar(name="loss", value=1, step=8)]))),
                              (9, dict(event=pb.Event(kind="loss-scale", step=9))),
                              (10, dict(timing=pb.Timing(step=10, total=1)))):
            trainer.say(**message)
            harness.wait_for(f"step {step}", lambda step=step: self.target()["step"] == step)
        self.assertEqual(self.target()["state"], "running")
        trainer.say(goodbye=pb.Goodbye(step=12))
        self.assertEqual(self.record("finished")["step"], 12)
        self.assertEqual(self.target()["step"], 12)

    def target(self):
        self.gradb.send("info target")
        return self.record("target")


class Rules(Case):
    """Trainers that break the rules are turned away with a reason, and gradb lives on."""

    def turned_away(self, code, words, *messages, hello=True, **fields):
        trainer = self.trainer()
        if hello:
            trainer.hello(**fields)
        for message in messages:
            if isinstance(message, bytes):
                trainer.say_bytes(message)
            else:
                trainer.say(**message)
        status, text = trainer.status()
        self.assertEqual(status, code, text)
        self.assertRegex(text, words)
        other = self.standing()  # everybody else is served as before
        other.say(goodbye=pb.Goodbye())
        self.record("finished")

    def test_versions(self):
        self.turned_away(grpc.StatusCode.FAILED_PRECONDITION, "versions 2 to 3.*version 1",
                         version_min=2, version_max=3)

    def test_no_hello(self):
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "must be a Hello",
                         dict(heartbeat=pb.Heartbeat()), hello=False)

    def test_garbage(self):
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "not a FromTrainer", b"\xff" * 100)

    def test_second_hello(self):
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "second Hello", dict(hello=pb.Hello()))

    def test_node_numbers(self):
        node = pb.Node(id=7, name="n", type="T")
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "node number 7 follows 0",
                         dict(graph=pb.GraphChunk(nodes=[node])))

    def test_empty_name(self):
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "node 1 has a name of 0 bytes",
                         dict(graph=pb.GraphChunk(nodes=[pb.Node(id=1)])))

    def test_too_many_dimensions(self):
        node = pb.Node(id=1, name="n", outputs=[pb.Output(shape=[1] * 33)])
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "33 dimensions",
                         dict(graph=pb.GraphChunk(nodes=[node])))

    def test_inputs_for_nobody(self):
        self.turned_away(grpc.StatusCode.INVALID_ARGUMENT, "node 9, which was not sent",
                         dict(graph=pb.GraphChunk(more_inputs=[pb.MoreInputs(node=9)])))

    def test_message_too_large(self):
        self.turned_away(grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than",
                         dict(log=pb.Log(lines=["x" * (1 << 20)] * 20)))

    def test_message_of_many_tiny_parts(self):
        """Four MiB of empty nodes would unpack to hundreds. As bytes, because Python would take seconds to pack them,
        in which nobody answers heartbeats."""
        nodes = pb.GraphChunk(nodes=[pb.Node()]).SerializeToString() * (2 << 20)
        size, length = len(nodes), b""
        while size >= 128:
            size, length = size >> 7, length + bytes([size & 127 | 128])
        tag = pb.FromTrainer(graph=pb.GraphChunk()).SerializeToString()[:1]
        self.turned_away(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many elements",
                         tag + length + bytes([size]) + nodes)

    def test_graph_too_large(self):
        self.gradb.send("set max-graph 1MiB")
        self.record("ok|set")
        nodes = [pb.Node(id=i + 1, name="n" * 8000 + str(i)) for i in range(300)]
        self.turned_away(grpc.StatusCode.RESOURCE_EXHAUSTED, "max-graph",
                         *[dict(graph=pb.GraphChunk(nodes=nodes[i:i + 50])) for i in range(0, 300, 50)])

    def test_token(self):
        self.gradb.send("set token sesame")
        for token, word in (("", "missing"), ("sesame", "in plain text")):
            trainer = self.trainer()
            trainer.hello(token=token)
            self.refused_token(trainer, word)
        for token in ("sesamE", "", "x" * 5000):
            trainer = self.trainer()
            trainer.prove(token)
            self.refused_token(trainer, "wrong")
        trainer = self.trainer()
        trainer.prove("sesame")
        self.assertEqual(trainer.hear("proof").mac, trainer.mac("sesame", b"debugger"))
        trainer.hello()
        self.assertIsNotNone(trainer.hear("welcome"))

    def test_libgradb_says_that_its_token_is_refused(self):
        self.gradb.send("set token sesame")
        for token in ("", "other"):
            out = self.charlm(f"127.0.0.1:{self.port}", GRADB_TOKEN=token)
            self.assertEqual(re.findall("(?m)^gradb: .*", out), [
                f"gradb: not connected to 127.0.0.1:{self.port}: the debugger there requires its token: set GRADB_TOKEN "
                "to the output of `show token` there"])

    def refused_token(self, trainer, word):
        code, text = trainer.status()
        self.assertEqual(code, grpc.StatusCode.UNAUTHENTICATED, text)
        self.assertIn(word, text)

    def test_token_that_is_proven_by_reflection_or_replay(self):
        self.gradb.send("set token sesame")
        first = self.trainer()
        first.prove("sesame")
        proof = first.hear("proof").mac
        for mac in (first.mac("sesame", b"debugger"), proof, first.mac("sesame", b"trainer"), b"", b"x" * 31):
            other = self.trainer()
            other.nonce = first.nonce
            other.challenge()
            other.say(proof=pb.Proof(mac=mac))
            self.refused_token(other, "wrong")

    def test_order_of_the_proof(self):
        self.gradb.send("set token sesame")
        for words in ([dict(proof=pb.Proof(mac=b"x" * 32))], [dict(authenticate=pb.Authenticate(nonce=b"short"))],
                      [dict(authenticate=pb.Authenticate(nonce=b"n" * 32))] * 2):
            trainer = self.trainer()
            for word in words:
                trainer.say(**word)
            code, text = trainer.status()
            self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, text)

    def test_a_debugger_without_a_token_says_so(self):
        trainer = self.trainer()
        self.assertFalse(trainer.challenge().token)
        trainer.hello()
        self.assertIsNotNone(trainer.hear("welcome"))

    def charlm(self, address, **env):
        done = subprocess.run([harness.CHARLM, "--steps", "2", "--data", harness.SOURCE / "COPYING"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=harness.DEADLINE, check=False,
                              env=dict(os.environ, GRADB_ADDRESS=address, **env))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("finished after 2 steps", done.stdout)
        return done.stdout

    def test_libgradb_proves_its_token(self):
        self.gradb.send("set token sesame")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.charlm, f"127.0.0.1:{self.port}", GRADB_TOKEN="sesame")
            self.record("stopped")
            self.gradb.send("continue")
            run.result()

    def serve(self, attach):
        """The port of a debugger of our own."""
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("gradb.v1.Trainer", {
            "Attach": grpc.stream_stream_rpc_method_handler(attach, pb.FromTrainer.FromString,
                                                            lambda m: m if isinstance(m, bytes)
                                                            else m.SerializeToString())}),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        return port

    def test_libgradb_gives_no_memory_to_a_debugger_that_proved_nothing(self):
        plan = pb.ToTrainer(watch_plan=pb.WatchPlan(items=[pb.WatchItem()])).SerializeToString()
        item = plan[2:]
        size, length = len(item) * (7 << 20) // len(item), b""
        body = item * (size // len(item))
        size = len(body)
        while size >= 128:
            size, length = size >> 7, length + bytes([size & 127 | 128])

        def attach(requests, _context):
            next(requests)
            yield plan[:1] + length + bytes([size]) + body
            for _ in requests:
                pass

        port = self.serve(attach)
        process = subprocess.Popen([harness.CHARLM, "--steps", "2", "--data", harness.SOURCE / "COPYING"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, GRADB_ADDRESS=f"127.0.0.1:{port}", GRADB_TOKEN="sesame"))
        with process:
            self.assertIn("finished after 2 steps", process.stdout.read())
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(used.ru_maxrss >> 10, 200)

    def test_libgradb_wants_the_token_proven(self):
        """What listens there and does not know the token hears nothing of the training."""
        heard = []

        def attach(requests, _context):
            heard.append(next(requests))
            yield pb.ToTrainer(challenge=pb.Challenge(nonce=b"n" * 32, token=True))
            heard.append(next(requests))
            yield pb.ToTrainer(proof=pb.Proof(mac=heard[1].proof.mac))  # its own, sent back
            yield pb.ToTrainer(welcome=pb.Welcome(version=1, debugger_id=b"d" * 16, stop=True))
            heard.extend(requests)

        port = self.serve(attach)
        out = self.charlm(f"127.0.0.1:{port}", GRADB_TOKEN="sesame")
        self.assertEqual(re.findall("(?m)^gradb: .*", out), [f"gradb: not connected to 127.0.0.1:{port}: the debugger there "
                                                             "did not prove that it knows the token"])
        self.assertEqual([message.WhichOneof("msg") for message in heard[:2]], ["authenticate", "proof"])
        self.assertTrue(all(message.WhichOneof("msg") in ("authenticate", "proof") for message in heard), heard)
        self.assertNotIn(b"sesame", b"".join(message.SerializeToString() for message in heard))

    def test_beyond_the_host_a_token_is_needed(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # nothing is sent
                host = probe.getsockname()[0]
            except OSError:
                self.skipTest("this machine has no address but loopback")
        with harness.Gradb("-nx", "--json", listen="0.0.0.0:0") as gradb:
            token = gradb.expect(r"GRADB_TOKEN=(\w+)").group(1)
            port = json.loads(gradb.expect('"type":"listen"').string)["address"].rsplit(":", 1)[1]
            out = self.charlm(f"{host}:{port}", GRADB_TOKEN="")
            self.assertRegex(out, "(?m)^gradb: not connected to .*must prove a token")
            stranger = self.trainer(port=port, host=host)
            stranger.hello()
            self.refused_token(stranger, "missing")
            known = self.trainer(port=port, host=host)
            known.prove(token)
            known.hello()
            self.assertIsNotNone(known.hear("welcome"))

    def bad_value(self, words, **begin):
        """The value is refused, the session lives on."""
        trainer = self.standing()
        self.gradb.send("save net/weight /nowhere/weight.npy")
        fetch = trainer.hear("fetch")
        trainer.say(tensor_begin=pb.TensorBegin(request=fetch.request, **begin))
        self.gradb.expect(words)
        self.assertEqual(trainer.hear("cancel").request, fetch.request)
        self.gradb.send("print net/weight")
        trainer.answer_fetch(WEIGHT)
        self.assertEqual(self.record("tensor")["step"], 1)

    def test_bytes_that_do_not_match(self):
        self.bad_value("announced 47 bytes.*takes 48", dtype=pb.FLOAT32, shape=[3, 4], bytes=47)

    def test_negative_dimension(self):
        self.bad_value("dimension 1 of a shape is -4", dtype=pb.FLOAT32, shape=[3, -4], bytes=48)

    def test_shape_that_overflows(self):
        self.bad_value("error", dtype=pb.FLOAT32, shape=[2**62, 2**62, 2], bytes=0)

    def test_absurd_size(self):
        self.bad_value("max-tensor", dtype=pb.FLOAT32, shape=[2**50], bytes=2**52)

    def test_unknown_type(self):
        self.bad_value("error", dtype=99, shape=[3, 4], bytes=48)

    def test_strings_cannot_be_fetched(self):
        self.bad_value("error", dtype=pb.STRING, shape=[3, 4], bytes=48)

    def test_abridged_without_being_asked(self):
        self.bad_value("abridged a tensor to the shape \\(3, 4\\)", dtype=pb.FLOAT32, shape=[3, 4], bytes=48, whole=[30, 4])

    def test_shared_memory_that_was_not_agreed_on(self):
        place = pb.ShmPlace(segment=1, name="/gradb-1-0123456789abcdef-1", size=4096)
        self.bad_value("in shared memory, which was not negotiated", dtype=pb.FLOAT32, shape=[3, 4], bytes=48, shm=place)

    def test_more_data_than_announced(self):
        trainer = self.standing()
        self.gradb.send("print net/weight")
        fetch = trainer.hear("fetch")
        trainer.say(tensor_begin=pb.TensorBegin(request=fetch.request, dtype=pb.FLOAT32, shape=[3, 4],
                                                bytes=48))
        trainer.say(tensor_data=pb.TensorData(request=fetch.request, data=b"x" * 49))
        self.gradb.expect("sent 49 bytes at 0 of a value of 48")

    def test_vanishing_in_the_middle_of_a_value(self):
        trainer = self.standing()
        self.gradb.send("print net/weight")
        fetch = trainer.hear("fetch")
        trainer.say(tensor_begin=pb.TensorBegin(request=fetch.request, dtype=pb.FLOAT32, shape=[3, 4],
                                                bytes=48))
        trainer.say(tensor_data=pb.TensorData(request=fetch.request, data=b"x" * 20))
        trainer.close()
        self.gradb.expect("training process (is gone|has ended)|the connection broke")
        self.gradb.send("info node net/weight")  # what was learned stays
        self.gradb.expect("train.py|Parameter")

    def test_sixty_four_at_once(self):
        trainers = [self.trainer() for _ in range(64)]
        for rank, trainer in enumerate(trainers):
            trainer.hello(rank=rank, world_size=64)
        sessions = {trainer.hear("welcome").session for trainer in trainers}
        self.assertEqual(len(sessions), 64)


class SharedMemory(Case):
    """Names and objects that a trainer must not get away with, and one that is right."""

    HEX = "0123456789abcdef"

    def segment(self, name, data, mode=0o600):
        path = pathlib.Path("/dev/shm") / name.lstrip("/")
        path.write_bytes(data)
        path.chmod(mode)
        self.addCleanup(lambda: path.unlink(missing_ok=True))
        return path

    def greeted(self, name, nonce=b"n" * 32):
        trainer = self.trainer()
        trainer.hello(shm_probe=pb.ShmProbe(name=name, nonce=nonce))
        return trainer, trainer.hear("welcome").shm

    def test_names(self):
        for name in ("", "/", "gradb-1-%s-1" % self.HEX, "/../etc/passwd", "/gradb-1-xyz-1",
                     "/gradb-1-%s-1/../x" % self.HEX, "/gradb-1-%s-" % self.HEX,
                     "/gradb--%s-1" % self.HEX, "/gradb-%s-%s-1" % ("1" * 60, self.HEX),
                     "/gradb-1-%s-1" % self.HEX.upper(), "/gradb-1-%s-999" % self.HEX):
            self.assertFalse(self.greeted(name)[1], name)

    def test_wrong_nonce_and_open_doors(self):
        name = f"/gradb-{os.getpid()}-{self.HEX}-1"
        self.segment(name, b"x" * 4096)
        self.assertFalse(self.greeted(name)[1])
        self.segment(name, b"n" * 4096, mode=0o644)
        self.assertFalse(self.greeted(name)[1])
        self.segment(name, b"n" * 31)
        self.assertFalse(self.greeted(name)[1])

    def test_a_value_and_the_reuse_of_its_segment(self):
        base = f"/gradb-{os.getpid()}-{self.HEX}-"
        probe = self.segment(base + "1", b"n" * 4096)
        trainer, shm = self.greeted(base + "1")
        self.assertTrue(shm)
        self.assertFalse(probe.exists())
        trainer.graph()
        trainer.stand()
        self.record("stopped")
        segment = self.segment(base + "2", b"\0" * 64 + WEIGHT.tobytes() + b"\0" * 3984)
        begin = dict(dtype=pb.FLOAT32, shape=[3, 4], bytes=48, step=1)
        self.gradb.send("print net/weight")
        fetch = trainer.hear("fetch")
        self.assertTrue(fetch.allow_shm)
        trainer.say(tensor_begin=pb.TensorBegin(request=fetch.request, shm=pb.ShmPlace(
            segment=2, name=base + "2", size=4096, offset=64), **begin))
        self.assertEqual(trainer.hear("shm_mapped").segment, 2)
        self.assertEqual(self.record("tensor")["values"], WEIGHT.tolist())
        self.assertFalse(segment.exists())

    def test_places_outside(self):
        base = f"/gradb-{os.getpid()}-{self.HEX}-"
        self.segment(base + "1", b"n" * 4096)
        trainer, _ = self.greeted(base + "1")
        trainer.graph()
        trainer.stand()
        self.record("stopped")
        other = f"/gradb-{os.getpid()}-{self.HEX[::-1]}-2"
        self.segment(base + "2", b"\0" * 4096)
        self.segment(other, b"\0" * 4096)
        for words, place in (
                ("has 4096 bytes, not 8192", dict(segment=2, name=base + "2", size=8192)),
                ("exceed a shared memory segment", dict(segment=2, name=base + "2", size=4096, offset=4090)),
                ("exceed a shared memory segment", dict(segment=2, size=4096, offset=2**64 - 8)),
                ("has an invalid name", dict(segment=3, name=other, size=4096)),
                ("has an invalid name", dict(segment=4, size=4096)),
                ("has an invalid name", dict(segment=0, name=base + "2", size=4096))):
            self.gradb.send("print net/weight")
            fetch = trainer.hear("fetch")
            trainer.say(tensor_begin=pb.TensorBegin(request=fetch.request, dtype=pb.FLOAT32,
                                                    shape=[3, 4], bytes=48, shm=pb.ShmPlace(**place)))
            self.gradb.expect(words)


class Page(Case):
    """docs/protocol.md."""

    def test_the_worked_example_works(self):
        page = (harness.SOURCE / "docs" / "protocol.md").read_text()
        code = textwrap.dedent(page[page.index("    import queue, threading"):
                                    page.index("With `gradb listen` in one terminal")])
        folder = harness.folder_of(self)
        harness.write_messages(folder, "gradb_v1")
        script = folder / "example.py"
        script.write_text(code.replace("127.0.0.1:50051", f"127.0.0.1:{self.port}"))
        with subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True) as example:
            self.addCleanup(example.kill)
            self.assertEqual(self.record("stopped")["step"], 0)
            self.gradb.send("step 3")
            self.assertEqual(self.record("stopped")["step"], 3)
            self.gradb.send("print net/w[0]")
            self.assertEqual(self.record("tensor")["shape"], [3])
            self.gradb.send("continue")
            self.assertEqual(self.record("finished")["text"], "the training ended")
            error = example.communicate(timeout=harness.DEADLINE)[1]
            self.assertEqual((example.returncode, error), (0, ""))


class RawBytes(Case):
    """Not even HTTP/2."""

    def test_garbage_and_silence(self):
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 1000, struct.pack(">I", 1 << 31) * 100):
            with socket.create_connection(("127.0.0.1", self.port), harness.DEADLINE) as sock:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
        self.standing()


if __name__ == "__main__":
    harness.main()
