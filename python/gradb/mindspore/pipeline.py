# SPDX-License-Identifier: MIT
"""The operations of a dataset and their settings."""
import mindspore.dataset as ds

_MOST = 8
_KINDS = {"BatchDataset": "batch", "MapDataset": "map", "PaddedBatchDataset": "padded_batch"}


def facts(iterator):
    """For the debugger: of the dataset that an iterator reads. MindSpore does not say how full its queues are."""
    found = {"kind": "dataset", "prefetch": ds.config.get_prefetch_size()}
    operations, workers = [], []
    for dataset in _operations(getattr(iterator, "_Iterator__ori_dataset", None)):
        name = type(dataset).__name__
        if name == "BatchDataset" and isinstance(getattr(dataset, "batch_size", None), int):
            found["batch_size"] = dataset.batch_size
        settings = []
        if name.startswith("Generator") or name in _KINDS or "sampler" in vars(dataset):
            count = getattr(dataset, "num_parallel_workers", None) or ds.config.get_num_parallel_workers()
            workers.append(count)
            settings.append("num_parallel_workers=%d" % count)
        if name.startswith("Generator") or name == "MapDataset":
            settings.append("python_multiprocessing=%s" % bool(getattr(dataset, "python_multiprocessing", False)))
        operations.append(_KINDS.get(name, name) + (" (%s)" % ", ".join(settings) if settings else ""))
    if operations:
        found["operations"] = "it is " + ", ".join(operations[:_MOST])
        found["workers"] = min(workers) if workers else 1
    return found


def _operations(dataset):
    """From the source on."""
    found, waiting = [], [dataset] if dataset is not None else []
    while waiting and len(found) < 4 * _MOST:
        dataset = waiting.pop()
        found.insert(0, dataset)
        waiting.extend(getattr(dataset, "children", ()))
    return found
