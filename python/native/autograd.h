// SPDX-License-Identifier: MIT
/*
 * The nodes of libtorch's autograd engine and the parts of its tensors that no function of libtorch
 * gives, read from memory: at the places that nodes.py has found and tried in this process. Where
 * it found none, native_knows_nodes says no, and passes are watched through Python's hooks.
 *
 * A node is the address of a torch::autograd::Node, a tensor that of a c10::TensorImpl.
 */
#ifndef GRADB_PYTHON_AUTOGRAD_H
#define GRADB_PYTHON_AUTOGRAD_H

#include <stdint.h>

#include "native.h"

/* A std::vector<at::Tensor>; an at::Tensor is the address of its TensorImpl. */
struct native_tensors {
    void **begin, **end, **room;
};

static inline size_t native_tensor_count(const struct native_tensors *tensors)
{
    return (size_t)(tensors->end - tensors->begin);
}

/* A torch::autograd::FunctionPostHook of ours. Its maker owns it; PyTorch never frees it. */
struct native_hook {
    const void *const *table; /* C++'s virtual functions */
    PyObject *dict;           /* NULL; of Python's hooks in a hook of PyTorch's own */
    /* Called in the thread that runs the node, without the interpreter lock, right after the node.
     * outputs: what it has computed; inputs: the gradients that it was given. */
    void (*run)(const struct native_hook *hook, const struct native_tensors *outputs,
                const struct native_tensors *inputs);
    void *ctx;
    uint32_t index;
};

bool native_knows_nodes(void);

/* The node that has made a tensor; NULL: none. */
const void *native_grad_fn(void *tensor);
/* Whether the node is a custom autograd.Function. */
bool native_is_custom(const void *node);
/* The node of a grad_fn; NULL: it is a custom autograd.Function, whose node is not known. */
void *native_node_of(PyObject *function);

/* What kind of node it is: the address of its class's virtual functions. */
const void *native_node_kind(const void *node);
/* Its number in the order in which its thread made nodes. */
uint64_t native_node_number(const void *node);
/* The number that the next node of this thread gets. */
uint64_t native_next_number(void);

size_t native_edge_count(const void *node);
/* The node that an edge leads to, NULL where there is none; *ret: which of its inputs the edge
 * leads to.
 */
void *native_edge(const void *node, size_t edge, uint32_t *ret);

/* Whether hooks of the program will see or change what goes in; and whether hooks in Python will
 * see what comes out. Those of DistributedDataParallel are in C++. */
bool native_has_pre_hooks(const void *node);
bool native_has_post_hooks(const void *node);

/* The tensor that an AccumulateGrad accumulates into; its gradient, NULL where there is none. */
void *native_leaf(const void *node);
void **native_gradient(void *leaf);

/* The hook runs after all that the node has. false: out of memory, nothing is done. */
bool native_attach(void *node, struct native_hook *hook);
void native_detach(void *node, const struct native_hook *hook);
/* Makes a hook of it. */
void native_prepare_hook(struct native_hook *hook);

bool native_is_defined(const void *tensor);
/* It is dense, in host memory, and of no subclass, and its elements are what its memory says. */
bool native_is_plain(const void *tensor);
/* How often it was written in place; 0 for tensors that do not count (inference mode). */
uint32_t native_count_writes(const void *tensor);
bool native_counts_writes(const void *tensor);

/* Keeps the TensorImpl, but nothing that it refers to, until it is released: its address is not
 * used again. */
void native_hold(void *tensor);
void native_release(void *tensor);
/* It is held, and somebody else still uses it. */
bool native_is_alive(const void *tensor);

/* The Python object of a tensor that is alive; that of an undefined one is None. */
PyObject *native_wrap(void *tensor);
/* All of them, as a tuple. */
PyObject *native_wrap_all(const struct native_tensors *tensors);

/* Functions of the Python module, see its table in module.c and nodes.py. */
PyObject *native_know_nodes(PyObject *module, PyObject *args);
PyObject *native_made_by(PyObject *module, PyObject *tensor);
PyObject *native_try_node(PyObject *module, PyObject *args);

#endif
