# SPDX-License-Identifier: MIT
"""Opens a checkpoint of 10,000 tensors (names, types and shapes of all), against the Python loaders for it.

    bench_open.py BENCH_OPEN

Both processes stay alive and alternate, with the file in the page cache. A result is the median of the ratios:
`open.KIND RATIO target T pass|short`, how many times faster gradb is. Loaders that are not installed are skipped with a
note: PyTorch of GRADB_TORCH_PYTHON or build/torch-venv, safetensors of GRADB_DUMP_PYTHON or build/dump-venv, MindSpore
of GRADB_MINDSPORE_PYTHON or build/mindspore-venv. BENCH_REPEAT: rounds (7).
"""
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"
TENSORS = 10000
BYTES = 4096  # per tensor
TARGETS = {"torch": 5, "safetensors": 1, "ckpt": 5}

# A loader answers each path with its seconds and the number of tensors, as bench_open does.
LOADER = """
import sys, time
{imports}
for line in sys.stdin:
    path = line.strip()
    start = time.perf_counter()
    count = {load}
    print(time.perf_counter() - start, count, flush=True)
"""
LOADERS = {
    "torch": ("GRADB_TORCH_PYTHON", "torch-venv", "import torch",
              "len([(k, v.dtype, v.shape) for k, v in torch.load(path, mmap=True, weights_only=True).items()])"),
    "safetensors": ("GRADB_DUMP_PYTHON", "dump-venv", "import safetensors",
                    "(lambda f: len([(k, f.get_slice(k).get_dtype(), f.get_slice(k).get_shape()) for k in f.keys()]))"
                    "(safetensors.safe_open(path, 'np'))"),
    "ckpt": ("GRADB_MINDSPORE_PYTHON", "mindspore-venv", "import mindspore",
             "len([(k, v.dtype, v.shape) for k, v in mindspore.load_checkpoint(path).items()])"),
}


def names():
    """Names as in a deep network."""
    return [f"model.layers.{i // 4}.block.{'qkvo'[i % 4]}.weight" for i in range(TENSORS)]


def write_torch(path, python):
    """Uses torch.save itself."""
    script = f"import sys, torch\ntorch.save({{n: torch.zeros({BYTES // 4}) for n in sys.stdin.read().split()}}, {str(path)!r})"
    subprocess.run([python, "-c", script], input="\n".join(names()), text=True, check=True)


def write_safetensors(path, _python):
    """A header, then the data."""
    header = {name: {"dtype": "F32", "shape": [BYTES // 4], "data_offsets": [i * BYTES, (i + 1) * BYTES]}
              for i, name in enumerate(names())}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(TENSORS * BYTES))


def varint(value):
    """Protobuf's variable-length integer."""
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    """A protobuf field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def write_ckpt(path, _python):
    """One record per tensor."""
    tensor = b"\x08" + varint(BYTES // 4) + field(2, b"Float32") + field(3, bytes(BYTES))
    path.write_bytes(b"".join(field(1, field(1, name.encode()) + field(2, tensor)) for name in names()))


WRITERS = {"torch": write_torch, "safetensors": write_safetensors, "ckpt": write_ckpt}


class Asked:
    """A process that opens the paths it is given."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def open(self, path):
        """Returns the seconds that it took."""
        print(path, file=self.process.stdin, flush=True)
        seconds, count = self.process.stdout.readline().split()
        if int(count) != TENSORS:
            sys.exit(f"bench: {path}: found {count} of {TENSORS} tensors")
        return float(seconds)

    def close(self):
        """Ends the process by closing its input."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def interpreter(variable, venv, imports):
    """The Python that has the loader, or None."""
    python = os.environ.get(variable) or str(BUILD / venv / "bin" / "python")
    try:
        done = subprocess.run([python, "-c", imports], stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    return python if done.returncode == 0 else None


def measure(kind, tool, python, path):
    """Alternates the two."""
    _, _, imports, load = LOADERS[kind]
    both = [Asked([tool]), Asked([python, "-W", "ignore", "-c", LOADER.format(imports=imports, load=load)])]
    for asked in both:
        asked.open(path)  # first-time costs do not count
    rounds = [(both[0].open(path), both[1].open(path)) for _ in range(int(os.environ.get("BENCH_REPEAT") or 7))]
    for asked in both:
        asked.close()
    ratio = statistics.median(theirs / ours for ours, theirs in rounds)
    print(f"# open.{kind}: {TENSORS} tensors in {1e3 * statistics.median(ours for ours, _ in rounds):.1f} ms, "
          f"Python's loader {1e3 * statistics.median(theirs for _, theirs in rounds):.1f} ms")
    print(f"open.{kind} {ratio:.2f} target {TARGETS[kind]} {'pass' if ratio >= TARGETS[kind] else 'short'}", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="gradb-bench-") as folder:
        for kind, (variable, venv, imports, _) in LOADERS.items():
            python = interpreter(variable, venv, imports)
            if python is None:
                print(f"# open.{kind}: skipped, no {imports.split()[1]} ({variable}, build/{venv})")
                continue
            path = pathlib.Path(folder, "checkpoint." + kind)
            WRITERS[kind](path, python)
            measure(kind, sys.argv[1], python, path)


if __name__ == "__main__":
    main()
