# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a memory snapshot of any size, as pickle.dump would: a training of many equal steps.

    big_snapshot.py FILE BYTES

Strings and most stacks are references to their first occurrence; one stack in four is repeated with frames of its own,
and of those one in four with strings of its own, as snapshots that were put together by other tools have them.
"""
import itertools
import struct
import sys

import snapshot_writer

LAYERS = 40


class Pickle:
    """Protocol 4, without frames; each container and string gets a number, as Python's pickler does."""

    def __init__(self, write):
        self.write = write
        self.known = {}  # by identity, or text: the number
        self.count = 0

    def memoize(self, key=None):
        """Numbers what was just written."""
        if key is not None:
            self.known[key] = self.count
        self.count += 1
        self.write(b"\x94")

    def again(self, key):
        """Writes a reference; False if there is nothing to refer to."""
        if key not in self.known:
            return False
        number = self.known[key]
        self.write(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        return True

    def text(self, text, fresh=False):
        """A string."""
        if fresh or not self.again(text):
            data = text.encode()
            self.write((b"\x8c" + bytes([len(data)]) if len(data) < 256 else b"X" + struct.pack("<I", len(data))) + data)
            self.memoize(None if fresh else text)

    def integer(self, number):
        """An int as the pickler writes it."""
        if 0 <= number < 256:
            self.write(b"K" + bytes([number]))
        elif 0 <= number < 65536:
            self.write(b"M" + struct.pack("<H", number))
        elif -2**31 <= number < 2**31:
            self.write(b"J" + struct.pack("<i", number))
        else:
            data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
            self.write(b"\x8a" + bytes([len(data)]) + data)

    def value(self, value, fresh=False):
        """Any value of a snapshot."""
        if value is None or isinstance(value, bool):
            self.write({None: b"N", True: b"\x88", False: b"\x89"}[value])
        elif isinstance(value, str):
            self.text(value, fresh)
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.write(b"G" + struct.pack(">d", value))
        elif isinstance(value, tuple):
            for item in value:
                self.value(item)
            self.write(b"\x86")
            self.memoize()
        elif not self.again(id(value)):
            self.write(b"]" if isinstance(value, list) else b"}")
            self.memoize(id(value))
            self.items(value, fresh)

    def items(self, value, fresh=False):
        """What is in a list or dict."""
        if not value:
            return
        self.write(b"(")
        for item in value if isinstance(value, list) else itertools.chain(*value.items()):
            self.value(item, fresh)
        self.write(b"e" if isinstance(value, list) else b"u")


def copied(event, number):
    """The event, with frames of its own if it is its turn."""
    event = dict(event)
    if number % 4 == 0:
        event["frames"] = [dict(frame) for frame in event["frames"]]
    return event


def step_template(pickle, events, keep):
    """The bytes of a step's events as one batch of a list, and where their times are. All that they refer to was
    written before, so that they can be repeated."""
    template, times = bytearray(), []
    pickle.write = template.extend
    template += b"("
    for i, event in enumerate(events):
        event = copied(event, i)
        keep.append(event)  # its id must not be used again
        template += b"}"
        pickle.memoize()
        template += b"("
        for key, value in event.items():
            pickle.text(key)
            if key == "time_us":
                times.append(len(template) + 2)
                template += b"\x8a\x08" + bytes(8)
            else:
                pickle.value(value, fresh=key == "frames" and i % 16 == 0)
        template += b"u"
    template += b"e"
    return template, times


def write(path, size):
    """Returns the number of events."""
    device, ends, kept = snapshot_writer.Device(), [], []
    snapshot_writer.train(device, 3, layers=LAYERS, ends=ends)
    found = snapshot_writer.snapshot(device)
    count, clock = len(device.trace), device.trace[-1]["time_us"]
    with open(path, "wb", buffering=1 << 20) as file:
        pickle = Pickle(file.write)
        file.write(b"\x80\x04}")
        pickle.memoize()
        file.write(b"(")
        pickle.text("segments")
        pickle.value(found["segments"])
        pickle.text("device_traces")
        file.write(b"]")
        pickle.memoize()
        file.write(b"]")
        pickle.memoize()
        pickle.items(device.trace)
        template, times = step_template(pickle, device.trace[ends[-2]:ends[-1]], kept)
        while file.tell() < size:
            for at in times:
                clock += 37
                struct.pack_into("<q", template, at, clock)
            file.write(template)
            count += len(times)
        file.write(b"a")
        pickle.write = file.write
        for key in ("allocator_settings", "external_annotations"):  # the numbers are not known any more
            pickle.text(key, fresh=True)
            pickle.value(found[key], fresh=True)
        file.write(b"u.")
    return count


if __name__ == "__main__":
    print(write(sys.argv[1], int(sys.argv[2])), "events")
