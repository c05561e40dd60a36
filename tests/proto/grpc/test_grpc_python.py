# SPDX-License-Identifier: GPL-3.0-or-later
"""Stock gRPC clients (Python's, the C core that C++ uses too) against our server."""
import os
import pathlib
import socket
import subprocess
import sys
import threading
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

SERVER = harness.BUILD / "tests" / "proto" / "grpc" / "grpc_echo_server"
WAIT = harness.DEADLINE


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([str(SERVER), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])
        self.output = []

    def channel(self, *options, host="127.0.0.1", **kwargs):
        # A channel of its own connection, not one shared with earlier channels.
        options += (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
                    ("grpc.max_send_message_length", -1))
        return grpc.insecure_channel(f"{host}:{self.port}", options=options, **kwargs)

    def stop(self):
        self.process.stdin.close()
        self.output = self.process.stdout.read().splitlines()
        self.process.stdout.close()
        return self.process.wait(timeout=WAIT)


def unary(channel, method):
    return channel.unary_unary("/test.Echo/" + method)


class GrpcTest(unittest.TestCase):
    def serve(self, *options):
        self.server = Server(*options)
        self.addCleanup(self.stop)
        return self.server

    def stop(self):
        self.assertEqual(self.server.stop(), 0, self.server.output)
        self.assertIn("held at the end: 0", self.server.output)

    def expect_error(self, code, function, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as caught:
            function(*args, timeout=WAIT, **kwargs)
        self.assertEqual(caught.exception.code(), code)
        return caught.exception.details()


class Calls(GrpcTest):
    def test_unary(self):
        with self.serve().channel() as channel:
            for message in (b"", b"x", b"hello" * 1000, os.urandom(3 << 20)):
                self.assertEqual(unary(channel, "Unary")(message, timeout=WAIT), message)

    def test_client_stream(self):
        messages = [b"", b"a", b"b" * 3145728, os.urandom(100000)] + [b"c" * i for i in range(300)]
        wanted = b"%d %d %d" % (len(messages), sum(map(len, messages)), sum(map(sum, messages)))
        with self.serve().channel() as channel:
            for method in ("Count", "Chunks"):
                stream = channel.stream_unary("/test.Echo/" + method)
                self.assertEqual(stream(iter(messages), timeout=WAIT), wanted)
                self.assertEqual(stream(iter([]), timeout=WAIT), b"0 0 0")

    def test_bidi(self):
        with self.serve().channel() as channel:
            chat = channel.stream_stream("/test.Echo/Chat")
            more = threading.Semaphore(1)

            def ask():
                for i in range(50):
                    self.assertTrue(more.acquire(timeout=WAIT))  # each waits for the last answer
                    yield b"%d" % i
            got = []
            for answer in chat(ask(), timeout=WAIT):
                got.append(answer)
                more.release()
            self.assertEqual(got, [b"%d" % i for i in range(50)])

    def test_threads(self):
        server = self.serve()
        shared = server.channel()
        failed = []

        def work(number):
            try:
                own = server.channel()
                for i in range(20):
                    for channel in (own, shared):
                        message = b"%d %d " % (number, i) * (i * 500)
                        if unary(channel, "Unary")(message, timeout=WAIT) != message:
                            failed.append((number, i))
                        count = channel.stream_unary("/test.Echo/Count")(iter([message] * 5), timeout=WAIT)
                        if int(count.split()[1]) != 5 * len(message):
                            failed.append((number, i))
                own.close()
            except Exception as e:  # noqa: BLE001: a thread's fault must reach the test
                failed.append(e)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shared.close()
        self.assertEqual(failed, [])

    def test_compression(self):
        message = b"tensor " * 50000
        for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            server = Server()
            with server.channel(compression=kind) as channel:
                self.assertEqual(unary(channel, "Unary")(message, timeout=WAIT), message)
                for method in ("Count", "Chunks"):
                    count = channel.stream_unary("/test.Echo/" + method)
                    self.assertEqual(count(iter([message] * 3), timeout=WAIT).split()[:2],
                                     [b"3", b"%d" % (3 * len(message))])
            self.assertEqual(server.stop(), 0)

    def test_localhost_by_name(self):
        server = self.serve()
        with server.channel(host="localhost") as channel:
            self.assertEqual(unary(channel, "Unary")(b"by name", timeout=WAIT), b"by name")
        if socket.has_ipv6:
            try:
                socket.create_connection(("::1", server.port)).close()
            except OSError as e:
                if isinstance(e, ConnectionRefusedError):
                    raise
                return  # no ::1 on this machine
            with server.channel(host="[::1]") as channel:
                self.assertEqual(unary(channel, "Unary")(b"v6", timeout=WAIT), b"v6")


class Statuses(GrpcTest):
    def test_codes_and_texts(self):
        with self.serve().channel() as channel:
            fail = unary(channel, "Fail")
            for code in grpc.StatusCode:
                if code != grpc.StatusCode.OK:
                    text = f"{code.name}: 100 % w\u00e4r \u2713"
                    details = self.expect_error(code, fail, f"{code.value[0]} {text}".encode())
                    self.assertEqual(details, text)

    def test_unimplemented(self):
        with self.serve().channel() as channel:
            details = self.expect_error(grpc.StatusCode.UNIMPLEMENTED, unary(channel, "Nothing"), b"")
            self.assertIn("/test.Echo/Nothing", details)
            stream = channel.stream_unary("/no.Service/Stream")
            self.expect_error(grpc.StatusCode.UNIMPLEMENTED, stream, iter([b"x" * 100000] * 100))

    def test_deadline(self):
        with self.serve().channel() as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                unary(channel, "Hold")(b"", timeout=0.05)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            harness.wait_for("the held call to go",
                             lambda: unary(channel, "Held")(b"", timeout=WAIT) == b"0")

    def test_cancel(self):
        with self.serve().channel() as channel:
            held = [unary(channel, "Hold").future(b"", timeout=WAIT) for _ in range(10)]
            harness.wait_for("ten held calls", lambda: unary(channel, "Held")(b"", timeout=WAIT) == b"10")
            for call in held:
                call.cancel()
            harness.wait_for("no held calls", lambda: unary(channel, "Held")(b"", timeout=WAIT) == b"0")

    def test_oversized(self):
        with self.serve("max-message=100000").channel() as channel:
            self.assertEqual(unary(channel, "Unary")(b"x" * 100000, timeout=WAIT), b"x" * 100000)
            details = self.expect_error(grpc.StatusCode.RESOURCE_EXHAUSTED, unary(channel, "Unary"),
                                        b"x" * 100001)
            self.assertIn("100000", details)
            stream = channel.stream_unary("/test.Echo/Count")
            details = self.expect_error(grpc.StatusCode.RESOURCE_EXHAUSTED, stream,
                                        iter([b"x" * 5000] * 10 + [b"x" * 2000000] * 10))
            self.assertIn("limit", details)
            self.assertEqual(unary(channel, "Unary")(b"goes on", timeout=WAIT), b"goes on")

    def test_oversized_when_unpacked(self):
        server = self.serve("max-message=100000")
        with server.channel(compression=grpc.Compression.Gzip) as channel:
            details = self.expect_error(grpc.StatusCode.RESOURCE_EXHAUSTED, unary(channel, "Unary"),
                                        b"\0" * 10000000)
            self.assertIn("100000", details)

    def test_big_answer(self):
        with self.serve().channel() as channel:
            for size in (0, 1, 65536, 3 << 20, 30 << 20):
                self.assertEqual(len(unary(channel, "Big")(b"%d" % size, timeout=WAIT)), size)


class Connections(GrpcTest):
    def test_client_keepalive(self):
        options = (("grpc.keepalive_time_ms", 100), ("grpc.keepalive_timeout_ms", 20000),
                   ("grpc.http2.max_pings_without_data", 0),
                   ("grpc.keepalive_permit_without_calls", 1))
        with self.serve().channel(*options) as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                unary(channel, "Hold")(b"", timeout=1)  # some ten PINGs long
            self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            self.assertEqual(unary(channel, "Unary")(b"x", timeout=WAIT), b"x")

    def test_server_keepalive(self):
        with self.serve("keepalive=0.1").channel() as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                unary(channel, "Hold")(b"", timeout=1)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            self.assertEqual(unary(channel, "Unary")(b"x", timeout=WAIT), b"x")

    def test_goaway_and_again(self):
        with self.serve().channel() as channel:
            for _ in range(3):  # the channel connects again each time
                self.assertEqual(unary(channel, "Bye")(b"x", timeout=WAIT, wait_for_ready=True), b"x")

    def test_server_ends(self):
        server = Server()
        with server.channel() as channel:
            held = unary(channel, "Hold").future(b"")
            harness.wait_for("the held call", lambda: unary(channel, "Held")(b"", timeout=WAIT) == b"1")
            self.assertEqual(server.stop(), 0)
            self.assertNotEqual(held.exception(timeout=WAIT).code(), grpc.StatusCode.OK)

    def test_client_vanishes(self):
        code = ("import grpc, os, sys\n"
                "c = grpc.insecure_channel(sys.argv[1])\n"
                "f = c.unary_unary('/test.Echo/Hold').future(b'')\n"
                "c.unary_unary('/test.Echo/Unary')(b'', timeout=60)\n"
                "os._exit(3)\n")
        server = self.serve()
        done = subprocess.run([sys.executable, "-c", code, server.address], timeout=2 * WAIT, check=False)
        self.assertEqual(done.returncode, 3)
        with server.channel() as channel:
            harness.wait_for("no held calls", lambda: unary(channel, "Held")(b"", timeout=WAIT) == b"0")

    def test_64_connections(self):
        server = self.serve()
        channels = [server.channel() for _ in range(64)]
        calls = [unary(c, "Unary").future(b"%d" % i, timeout=WAIT) for i, c in enumerate(channels)]
        self.assertEqual([c.result() for c in calls], [b"%d" % i for i in range(64)])
        for channel in channels:
            channel.close()


if __name__ == "__main__":
    harness.main()
