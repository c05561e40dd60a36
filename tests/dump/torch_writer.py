# SPDX-License-Identifier: GPL-3.0-or-later
"""Pickles and PyTorch files byte by byte, as no library would write them."""
import io
import struct
import zipfile

PROTO = b"\x80\x02"


def text(word):
    word = word.encode() if isinstance(word, str) else word
    return b"X" + struct.pack("<I", len(word)) + word


def number(value):
    if -2**31 <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def storage(key="0", cls="FloatStorage", numel=6, kind="storage", location="cpu"):
    return b"(" + text(kind) + named("torch", cls) + text(key) + text(location) + number(numel) + b"tQ"


def tensor(where=None, offset=0, size=(2, 3), stride=(3, 1), flags=b"", function="_rebuild_tensor_v2"):
    where = storage() if where is None else where
    return named("torch._utils", function) + b"(" + where + number(offset) + numbers(size) + numbers(stride) + \
        b"\x89" + named("collections", "OrderedDict") + b")R" + flags + b"tR"


def single(what):
    """A program with this result."""
    return PROTO + what + b"."


def torch_zip(program, records=None, **more):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        target.writestr("a/data.pkl", program)
        for name, data in ({"data/0": bytes(24)} if records is None else records).items():
            target.writestr("a/" + name, data)
        for name, data in more.items():
            target.writestr("a/" + name, data)
    return out.getvalue()
