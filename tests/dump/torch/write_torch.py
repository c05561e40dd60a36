# SPDX-License-Identifier: GPL-3.0-or-later
"""Files written by PyTorch, and their contents according to PyTorch: write_torch.py DIRECTORY.

expected.json: file -> name -> {"dtype", "shape", "hex"} of a tensor (values in gradb's types, in C order,
little-endian), {"text"} of a value, or {"problem"}; for identical tensors {"same_as"}; "kind" and "trainable" if
PyTorch says so.
"""
import collections
import io
import json
import pathlib
import pickle
import sys
import types
import warnings

import numpy as np
import torch

warnings.filterwarnings("ignore")
DIRECTORY = pathlib.Path(sys.argv[1])
WIDENED = {"complex32": "complex64", "qint8": "int8", "quint8": "uint8", "qint32": "int32", "quint4x2": "uint8"}
expected = {}


def bits(dtype, shape):
    """Arbitrary bits: NaN with payloads, infinities, denormals."""
    size = torch.empty((), dtype=dtype).element_size() if dtype != torch.bool else 1
    count = int(np.prod(shape)) * size
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).to(torch.bool)
    return torch.randint(0, 256, (count,), dtype=torch.uint8).view(dtype).reshape(shape)


def values(tensor):
    """A tensor's values as gradb shows them: plain bytes, in order."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    name = str(tensor.dtype)[6:]
    if name.startswith("float8"):
        tensor, name = tensor.to(torch.float32), "float32"
    if name == "complex32":
        tensor, name = tensor.to(torch.complex64), "complex64"
    tensor = tensor.resolve_conj().resolve_neg().contiguous()
    shape = list(tensor.shape)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return {"dtype": name, "shape": shape, "hex": tensor.reshape(-1).view(torch.uint8).numpy().tobytes().hex()}


def same(tensor):
    """What two identical tensors share."""
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg())


class Listing:
    """The entries of one file, as expected."""

    def __init__(self):
        self.entries, self.seen = {}, {}

    def tensor(self, name, tensor, **more):
        entry = values(tensor)
        if tensor.numel():
            first = self.seen.setdefault(same(tensor), name)
            if first != name:
                entry["same_as"] = first
        self.entries[name] = dict(entry, **more)

    def walk(self, name, value):
        """Dicts and lists by their keys; what contains no tensors is its repr."""
        if isinstance(value, torch.Tensor):
            self.tensor(name, value)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.walk((f"{name}.{key}" if name else key) if isinstance(key, str) else f"{name}[{key!r}]", item)
        elif isinstance(value, (list, tuple)) and not flat(value):
            for i, item in enumerate(value):
                self.walk(f"{name}[{i}]", item)
        elif isinstance(value, torch.device):
            self.entries[name] = {"text": f"torch.device({value.type!r}, {value.index})"}
        elif isinstance(value, torch.Size):
            self.entries[name] = {"text": f"torch.Size({tuple(value)!r})"}
        else:
            self.entries[name] = {"text": repr(value)}


def flat(value):
    return not any(isinstance(item, (list, tuple, dict, torch.Tensor)) for item in value)


def save(name, value, listing=None, **how):
    torch.save(value, DIRECTORY / name, **how)
    if listing is None:
        listing = Listing()
        listing.walk("", value)
    expected[name] = listing.entries


def all_types():
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
             "complex128"]
    return {name: bits(getattr(torch, name), (3, 5)) for name in names}


def new_types():
    """Types without a storage class of their own."""
    names = ["complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
             "float8_e5m2fnuz", "float8_e8m0fnu"]
    return {name: bits(getattr(torch, name), (3, 5)) for name in names
            if hasattr(torch, name) and hasattr(torch._utils, "_rebuild_tensor_v3")}


def views():
    base = bits(torch.float32, (4, 5, 6))
    row = torch.arange(7, dtype=torch.int16)
    return {"base": base, "transposed": base.transpose(0, 2), "permuted": base.permute(1, 2, 0), "part": base[1:3, ::2, 3:],
            "row": base[2, 3], "element": base[1, 2, 3], "expanded": row.expand(3, 2, 7), "again": base[:],
            "strided": row.as_strided((2, 3), (3, 1), 1), "overlap": row.as_strided((3, 3), (2, 1)),
            "none": base[:0], "empty": torch.zeros(2, 0, 3), "scalar": torch.tensor(2.5), "diagonal": base[0].diagonal(),
            "many": torch.zeros([1] * 20)}


def lazy():
    """Flags applied when values are read; PyTorch 1.13 loses them when it saves."""
    z, other = bits(torch.complex64, (3, 4)), bits(torch.complex64, (3, 4))
    return {"z": z, "conj": z.conj(), "both": z.conj().t(), "real": other.real, "imag": other.conj().imag,
            "double": bits(torch.complex128, (5,)).conj()}


def simple_values():
    return {"ints": [0, -1, 1, 255, 256, 65535, 65536, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63, 2**40, -2**40],
            "floats": (0.1, -0.0, 1e-300, 1e16, 123456789.125, float("inf"), float("-inf"), float("nan"), 2.0),
            "truth": [True, False, None], "text": "naïve \U0001f600 \t\n\\", "empty": "", "one": (1,), "list": [], "tuple": (),
            "device": torch.device("cuda", 1), "dtype": torch.bfloat16, "size": torch.Size([2, 3]),
            "deep": {"a": {"b": [[1], {"c": "x"}]}}, "ordered": collections.OrderedDict(p=1, q=2), 7: 8, -3: "minus",
            ("t", 1): "tuple key", None: "none key", 1.5: "float key"}


class Net(torch.nn.Module):
    """With tied weights, a missing bias, buffers that are saved or not, nested modules."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 6)
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 6, bias=False), torch.nn.BatchNorm1d(6), torch.nn.ReLU())
        self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(2)), torch.nn.Parameter(torch.randn(1))])
        self.head = torch.nn.Linear(6, 11)
        self.head.weight = self.embed.weight
        self.frozen = torch.nn.Parameter(torch.randn(3), requires_grad=False)
        self.register_buffer("mask", torch.ones(2, 3).tril(), persistent=False)
        self.register_buffer("nothing", None)
        self.options = {"dropout": 0.5}

    def forward(self, x):
        return self.head(self.body(self.embed(x).mean(1)))


def module_listing(net):
    """Its own parameters and buffers before those of its submodules."""
    listing = Listing()
    for prefix, module in net.named_modules():
        at = prefix + "." if prefix else ""
        for name, tensor in module._parameters.items():
            if tensor is not None:
                listing.tensor(at + name, tensor, kind="parameter", trainable="yes" if tensor.requires_grad else "no")
        for name, tensor in module._buffers.items():
            if tensor is not None:
                listing.tensor(at + name, tensor, kind="buffer", trainable="no")
    return listing


def checkpoint(net):
    """What a training loop saves."""
    adam = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01, amsgrad=True)
    sgd = torch.optim.SGD(net.head.parameters(), lr=0.1, momentum=0.9)
    net(torch.randint(0, 11, (4, 3))).pow(2).mean().backward()
    adam.step()
    sgd.step()
    schedule = torch.optim.lr_scheduler.StepLR(sgd, 3)
    return {"epoch": 3, "state_dict": net.state_dict(), "optimizer": adam.state_dict(), "sgd": sgd.state_dict(),
            "scheduler": schedule.state_dict(), "best": torch.tensor(0.25), "args": {"lr": 0.01, "name": "tiny"}}


def checkpoint_listing(value):
    listing = Listing()
    listing.walk("", value)
    for name, entry in listing.entries.items():
        if name.startswith("state_dict."):
            is_buffer = name.rsplit(".", 1)[1] in ("running_mean", "running_var", "num_batches_tracked")
            entry["kind"] = "buffer" if is_buffer else "parameter"
        elif name.startswith(("optimizer.state", "sgd.state")) and "hex" in entry:
            entry["kind"] = "optimizer"
    return listing


class Tagged(torch.Tensor):
    """A subclass with an attribute."""


def odd():
    """Everything except one dense tensor."""
    listing, value = Listing(), {}
    coo = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    csr = torch.eye(3).to_sparse_csr()
    for name, parts in (("coo", {"indices": coo._indices(), "values": coo._values()}),
                        ("csr", {"crow_indices": csr.crow_indices(), "col_indices": csr.col_indices(),
                                 "values": csr.values()})):
        value[name] = {"coo": coo, "csr": csr}[name]
        listing.entries[name] = {"text": f"sparse_{name} tensor of shape {tuple(value[name].shape)}"}
        for part, tensor in parts.items():
            listing.tensor(f"{name}.{part}", tensor)
    real = torch.randn(4, 6)
    value["q8"] = torch.quantize_per_tensor(real, 0.5, 10, torch.quint8)
    listing.tensor("q8", value["q8"], note="quantised: the values are (q - 10) * 0.5")
    value["q32"] = torch.quantize_per_tensor(real, 0.25, -3, torch.qint32)
    listing.tensor("q32", value["q32"], note="quantised: the values are (q - -3) * 0.25")
    scales, zeros = torch.rand(4, dtype=torch.float64) + 0.5, torch.arange(4)
    value["qc"] = torch.quantize_per_channel(real, scales, zeros, 0, torch.qint8)
    listing.tensor("qc", value["qc"],
                   note="quantised along axis 0: the values are (q - zero_points) * scales")
    listing.tensor("qc.scales", value["qc"].q_per_channel_scales())
    listing.tensor("qc.zero_points", value["qc"].q_per_channel_zero_points())
    value["meta"] = torch.empty(2, 3, device="meta", dtype=torch.float16)
    listing.entries["meta"] = {"problem": "it was on the meta device: float16 (2, 3) without values"}
    value["parameter"] = torch.nn.Parameter(torch.randn(2, 2))
    listing.tensor("parameter", value["parameter"], kind="parameter", trainable="yes")
    value["wants"] = torch.randn(2).requires_grad_()
    listing.tensor("wants", value["wants"], kind="tensor", trainable="yes")
    value["tagged"] = torch.randn(3).as_subclass(Tagged)
    value["tagged"].extra = torch.tensor([1, 2])
    listing.tensor("tagged", value["tagged"].as_subclass(torch.Tensor))
    listing.tensor("tagged.extra", value["tagged"].extra)
    return value, listing


def arrays():
    """numpy's, whose values are in the pickle."""
    value = {"plain": np.arange(6, dtype="<f4").reshape(2, 3), "big": np.arange(5, dtype=">i2"),
             "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)), "scalar": np.float32(0.1), "count": np.int64(-7),
             "bytes": np.frombuffer(bytes(range(256)), "u1"), "truth": np.array([True, False]), "none": np.zeros((0, 3), "i4"),
             "complex": np.array([1 + 2j]), "zero": np.array(3.5)}
    entries = {}
    for name, array in value.items():
        if name in ("scalar", "count"):
            entries[name] = {"text": str(array)}
        else:
            native = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(array.shape)
            entries[name] = {"dtype": str(native.dtype), "shape": list(array.shape), "hex": native.tobytes().hex()}
    value["objects"] = np.array([None, "x"], dtype=object)
    entries["objects"] = {"problem": "a numpy array of objects, strings or other non-numeric type"}
    return value, entries


def pretend(module, name, **members):
    """A class of a package that is not installed: pickles contain only its name."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(".".join(parts[:i + 1])))
    made = type(name, (), dict(members, __module__=module))
    setattr(sys.modules[module], name, made)
    return made


def adapter():
    """What PyTorch's interface on MindSpore writes: arrays, and what they were."""
    made = {name: pretend("mindtorch.torch._utils", f"_rebuild_mindtorch_{name}")
            for name in ("tensor", "parameter", "parameter_with_state")}
    reduced = pretend("mindtorch.torch.tensor", "Tensor", __reduce_ex__=lambda self, protocol: self.how)
    tensor = pretend("mindspore.common.tensor", "Tensor")
    kinds = {kind: pretend("mindspore._c_expression.typing", kind, __getstate__=lambda self: (self.bits,))
             for kind in ("Float", "BFloat")}

    def dtype(kind, size):
        one = kinds[kind]()
        one.bits = size
        return one

    def object_of(function, *args):
        one = reduced()
        one.how = (made[function], args)
        return one

    def mindspore(array):
        one = tensor()
        one.value = array
        return one

    plain, wide, ints = np.arange(6, dtype="<f4").reshape(2, 3), np.array([1.5, -2.0], "<f4"), np.arange(3)
    value = {"w": object_of("tensor", plain, dtype("Float", 32)), "half": object_of("tensor", wide, dtype("BFloat", 16)),
             "p": object_of("parameter", mindspore(plain), True, "p", False),
             "s": object_of("parameter_with_state", mindspore(ints), False, "s", False, {"note": "kept"}),
             "bare": mindspore(ints)}
    entries = {}
    for name, array, more in (("w", plain, {}), ("half", wide, {"note": "bfloat16 that was widened to float32 when it was saved"}),
                              ("p", plain, {"kind": "parameter", "trainable": "yes"}),
                              ("s", ints, {"kind": "parameter", "trainable": "no"})):
        entries[name] = dict(dtype=str(array.dtype), shape=list(array.shape), hex=array.tobytes().hex(), **more)
    entries["s.note"] = {"text": "'kept'"}
    entries["bare"] = {"dtype": "int64", "shape": [3], "hex": ints.tobytes().hex()}
    return value, entries


def distributed():
    """Checkpoints of several ranks: one written by PyTorch, and one of two files with pieces of tensors."""
    from torch.distributed.checkpoint import metadata, save  # pylint: disable=C0415
    from torch.distributed.checkpoint.filesystem import FileSystemReader, _StorageInfo  # pylint: disable=C0415
    flat = {"model.w": bits(torch.float32, (3, 4)), "model.half": bits(torch.bfloat16, (5,)),
            "model.turned": bits(torch.int32, (3, 4)).t(), "model.scalar": torch.tensor(2.5), "epoch": 5, "name": "x"}
    folder = DIRECTORY / "dcp"
    save({"model": {key[6:]: value for key, value in flat.items() if key.startswith("model.")},
          "epoch": 5, "name": "x"}, checkpoint_id=folder, no_dist=True)
    listing = Listing()
    for name in FileSystemReader(folder).read_metadata().state_dict_metadata:
        listing.walk(name, flat[name])
    expected["dcp/.metadata"] = listing.entries

    folder = DIRECTORY / "ranks"
    folder.mkdir()
    rows, columns = bits(torch.float16, (7, 5)), bits(torch.float32, (2, 4))
    pieces = {"rows": [(rows[4:], (4, 0), "__1_0.distcp"), (rows[:4], (0, 0), "__0_0.distcp")],
              "columns": [(columns[:, :3], (0, 0), "__0_0.distcp"), (columns[:, 3:], (0, 3), "__1_0.distcp")],
              "lost": [(columns, (0, 0), "__7_0.distcp")], "up": [(columns, (0, 0), "../up.distcp")]}
    files, tensors, places = collections.defaultdict(bytes), {}, {}
    for name, parts in pieces.items():
        whole = {"rows": rows}.get(name, columns)
        chunks = []
        for part, offsets, file in parts:
            chunks.append(metadata.ChunkStorageMetadata(torch.Size(offsets), part.shape))
            out = io.BytesIO()
            torch.save(part.clone(), out)
            places[metadata.MetadataIndex(name, torch.Size(offsets))] = _StorageInfo(file, len(files[file]),
                                                                                      len(out.getvalue()))
            files[file] += out.getvalue()
        how = metadata.TensorProperties(dtype=whole.dtype)
        tensors[name] = metadata.TensorStorageMetadata(how, whole.shape, chunks)
    for file in ("__0_0.distcp", "__1_0.distcp"):
        (folder / file).write_bytes(files[file])
    (folder / ".metadata").write_bytes(pickle.dumps(metadata.Metadata(tensors, storage_data=places)))
    entries = {name: {"problem": problem} for name, problem in (
        ("columns", "its 2 pieces are not consecutive rows: they are split along another axis, or some are "
                    "missing"), ("lost", "cannot open __7_0.distcp: No such file or directory"),
        ("up", '"../up.distcp" is not a file name next to .metadata: directories are refused'))}
    expected["ranks/.metadata"] = dict({"rows": values(rows)}, **entries)


def main():
    torch.manual_seed(11)
    net = Net()
    save("types.pt", all_types())
    save("types.legacy", all_types(), _use_new_zipfile_serialization=False)
    save("views.pt", views())
    save("views.legacy", views(), _use_new_zipfile_serialization=False)
    save("lazy.pt", lazy())
    listing = Listing()
    listing.walk("", torch.load(DIRECTORY / "lazy.pt"))
    expected["lazy.pt"] = listing.entries
    save("new.pt", new_types())
    save("values.pt", simple_values())
    save("values.legacy", simple_values(), _use_new_zipfile_serialization=False)
    for protocol in (3, 4, 5):
        save(f"protocol{protocol}.pt", {"values": simple_values(), "views": views()},
             pickle_protocol=protocol)
    save("many.pt", {f"layer{i}.weight": torch.full((2,), float(i)) for i in range(700)})
    save("nested.pt", [torch.ones(2), (torch.zeros(1), {"a.b": torch.ones(3), "": torch.ones(1)}), [[torch.ones(1)]]])
    save("bare.pt", torch.arange(6.0).reshape(2, 3).t())
    save("bare.legacy", torch.arange(6.0).reshape(2, 3).t(), _use_new_zipfile_serialization=False)
    save("none.pt", {})
    for name, how in (("module.pt", {}), ("module.legacy", {"_use_new_zipfile_serialization": False})):
        save(name, net, module_listing(net), **how)
    value = checkpoint(net)
    save("checkpoint.pt", value, checkpoint_listing(value))
    save("checkpoint.legacy", value, checkpoint_listing(value), _use_new_zipfile_serialization=False)
    save("odd.pt", *odd())
    storage = torch.arange(5, dtype=torch.int32).storage()
    save("storage.pt", {"s": storage}, Listing())
    expected["storage.pt"] = {"s": values(torch.arange(5, dtype=torch.int32))}
    value, entries = arrays()
    for protocol in (2, 4, 5):
        torch.save(value, DIRECTORY / f"arrays{protocol}.pt", pickle_protocol=protocol)
        (DIRECTORY / f"arrays{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))
        expected[f"arrays{protocol}.pt"] = expected[f"arrays{protocol}.pkl"] = entries
    value, entries = adapter()
    torch.save(value, DIRECTORY / "adapter.pt")
    expected["adapter.pt"] = entries
    if int(torch.__version__.split(".")[0]) >= 2:  # older versions write them differently
        distributed()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(DIRECTORY / "script.jit"))
    (DIRECTORY / "expected.json").write_text(json.dumps({"version": torch.__version__, "files": expected}))


if __name__ == "__main__":
    main()
