// SPDX-License-Identifier: MIT
#include "autograd.h"

#include <string.h>

#include "objects.h"
#include "tensors.h"

/* The table of virtual functions of a FunctionPostHook: two destructors, operator(), and functions
 * that only compiled autograd calls. */
#define BEFORE    2 /* words in front of it: where the object begins, and its type */
#define DELETER   1
#define CALL      2
#define FUNCTIONS 8 /* at most */

#define WEAK     (1ULL << 32)  /* one weak reference, in the second word of a TensorImpl */
#define WEAK_ALL 0x7fffffffULL /* all of them, once they are shifted down */

/* Offsets in bytes. */
static struct {
    bool on;
    size_t node; /* of the Node's address, in a grad_fn */
    size_t number, edges, pre_hooks, tensor_pre_hooks, post_hooks; /* in a Node */
    size_t edge;                    /* bytes of an Edge; its input is the word at its end */
    size_t leaf;                    /* in an AccumulateGrad */
    size_t keys;                    /* in a TensorImpl */
    uint64_t usual;                 /* keys that a plain tensor may have */
    size_t versions;                /* of the VersionCounter's address, in a TensorImpl */
    size_t version;                 /* in a VersionCounter */
    PyTypeObject *custom, *example; /* of grad_fns that are Python objects of their own */
    void *undefined;                /* the TensorImpl of all undefined tensors */
    const void *const *python_hook; /* the virtual functions of Python's hooks */
    PyObject *(*wrap)(void *const *tensor);
    uint64_t (*next_number)(void);
    void **(*gradient)(void *tensor);
    void *const *(*grad_fn)(void *const *tensor);
    const void *custom_kind; /* of the nodes of `custom` */
    void *(*new_memory)(size_t);
    void (*free_memory)(void *);
    const void *table[BEFORE + FUNCTIONS];
} at;

static const void *place_in(const void *object, size_t offset)
{
    return (const char *)object + offset;
}

static uint64_t word_in(const void *object, size_t offset)
{
    uint64_t word;
    memcpy(&word, place_in(object, offset), sizeof(word));
    return word;
}

static void *address_in(const void *object, size_t offset)
{
    void *address;
    memcpy(&address, place_in(object, offset), sizeof(address));
    return address;
}

bool native_knows_nodes(void)
{
    return at.on;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

const void *native_grad_fn(void *tensor)
{
    return *at.grad_fn(&tensor);
}

bool native_is_custom(const void *node)
{
    return native_node_kind(node) == at.custom_kind;
}

void *native_node_of(PyObject *function)
{
    return PyObject_TypeCheck(function, at.custom) ? NULL : address_in(function, at.node);
}

const void *native_node_kind(const void *node)
{
    return address_in(node, 0);
}

uint64_t native_node_number(const void *node)
{
    return word_in(node, at.number);
}

uint64_t native_next_number(void)
{
    return at.next_number ? at.next_number() : 0;
}

/* A std::vector. */
struct vector {
    char *begin, *end, *room;
};

static struct vector vector_in(const void *object, size_t offset)
{
    struct vector vector;
    memcpy(&vector, place_in(object, offset), sizeof(vector));
    return vector;
}

static bool is_empty(const void *object, size_t offset)
{
    struct vector vector = vector_in(object, offset);
    return vector.begin == vector.end;
}

size_t native_edge_count(const void *node)
{
    struct vector edges = vector_in(node, at.edges);
    return (size_t)(edges.end - edges.begin) / at.edge;
}

void *native_edge(const void *node, size_t edge, uint32_t *ret)
{
    const char *place = vector_in(node, at.edges).begin + edge * at.edge;
    memcpy(ret, place + at.edge - sizeof(uint64_t), sizeof(*ret));
    return address_in(place, 0);
}

bool native_has_pre_hooks(const void *node)
{
    return !is_empty(node, at.pre_hooks) || !is_empty(node, at.tensor_pre_hooks);
}

/* What PyTorch keeps of Python's hooks when the last one was removed. */
static bool is_left_over(const struct native_hook *hook)
{
    return hook->table == at.python_hook && hook->dict && PyDict_Check(hook->dict) &&
           PyDict_Size(hook->dict) == 0;
}

/* How many hooks it has, in Python only or of all kinds. */
static unsigned count_post_hooks(const void *node, bool python)
{
    struct vector hooks = vector_in(node, at.post_hooks);
    unsigned count = 0;
    for (const char *place = hooks.begin; place < hooks.end; place += sizeof(void *)) {
        const struct native_hook *hook = address_in(place, 0);
        count += !is_left_over(hook) && (!python || hook->table == at.python_hook);
    }
    return count;
}

bool native_has_post_hooks(const void *node)
{
    return count_post_hooks(node, true) > 0;
}

void *native_leaf(const void *node)
{
    return address_in(node, at.leaf);
}

void **native_gradient(void *leaf)
{
    void **gradient = at.gradient(leaf);
    return native_is_defined(*gradient) ? gradient : NULL;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static void destroy_hook(struct native_hook *hook)
{
    (void)hook; /* it belongs to the pass */
}

/* operator() of the hook. C++ returns a vector as C returns a struct of its size. PyTorch assigns
 * what it returns to the vector that it gave as `outputs`, so that can be moved. */
static struct native_tensors call_hook(struct native_hook *hook, struct native_tensors *outputs,
                                       const struct native_tensors *inputs)
{
    hook->run(hook, outputs, inputs);
    struct native_tensors moved = *outputs;
    *outputs = (struct native_tensors){0};
    return moved;
}

void native_prepare_hook(struct native_hook *hook)
{
    hook->table = at.table + BEFORE;
    hook->dict = NULL;
}

static void put_vector(void *object, size_t offset, struct vector vector)
{
    memcpy((char *)object + offset, &vector, sizeof(vector));
}

bool native_attach(void *node, struct native_hook *hook)
{
    struct vector hooks = vector_in(node, at.post_hooks);
    if (hooks.end == hooks.room) {
        size_t used = (size_t)(hooks.end - hooks.begin);
        char *larger = at.new_memory(used + sizeof(hook));
        if (!larger) {
            return false;
        }
        if (used > 0) {
            memcpy(larger, hooks.begin, used);
        }
        at.free_memory(hooks.begin);
        hooks = (struct vector){larger, larger + used, larger + used + sizeof(hook)};
    }
    memcpy(hooks.end, &hook, sizeof(hook));
    hooks.end += sizeof(hook);
    put_vector(node, at.post_hooks, hooks);
    return true;
}

void native_detach(void *node, const struct native_hook *hook)
{
    struct vector hooks = vector_in(node, at.post_hooks);
    for (char *place = hooks.begin; place < hooks.end; place += sizeof(hook)) {
        if (address_in(place, 0) == hook) {
            memmove(place, place + sizeof(hook), (size_t)(hooks.end - place) - sizeof(hook));
            hooks.end -= sizeof(hook);
            put_vector(node, at.post_hooks, hooks);
            return;
        }
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

bool native_is_defined(const void *tensor)
{
    return tensor != at.undefined;
}

bool native_is_plain(const void *tensor)
{
    return (word_in(tensor, at.keys) & ~at.usual) == 0;
}

uint32_t native_count_writes(const void *tensor)
{
    const void *counter = address_in(tensor, at.versions);
    uint32_t version = 0; /* inference tensors have no counter */
    if (counter) {
        memcpy(&version, place_in(counter, at.version), sizeof(version));
    }
    return version;
}

bool native_counts_writes(const void *tensor)
{
    return address_in(tensor, at.versions);
}

/* The counts of references: the strong ones in the lower half, the weak ones in the upper. */
static uint64_t *counts_of(void *tensor)
{
    return (uint64_t *)tensor + 1;
}

void native_hold(void *tensor)
{
    __atomic_add_fetch(counts_of(tensor), WEAK, __ATOMIC_RELAXED);
}

void native_release(void *tensor)
{
    uint64_t left = __atomic_sub_fetch(counts_of(tensor), WEAK, __ATOMIC_ACQ_REL);
    if (((left >> 32) & WEAK_ALL) == 0) {
        void (*const *table)(void *) = address_in(tensor, 0);
        table[DELETER](tensor);
    }
}

bool native_is_alive(const void *tensor)
{
    return (uint32_t)__atomic_load_n((const uint64_t *)tensor + 1, __ATOMIC_ACQUIRE) != 0;
}

PyObject *native_wrap(void *tensor)
{
    return native_is_defined(tensor) ? at.wrap(&tensor) : Py_NewRef(Py_None);
}

PyObject *native_wrap_all(const struct native_tensors *tensors)
{
    size_t count = native_tensor_count(tensors);
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; all && i < count; i++) {
        PyObject *tensor = native_wrap(tensors->begin[i]);
        if (tensor) {
            PyTuple_SetItem(all, (Py_ssize_t)i, tensor); /* steals the reference */
        } else {
            Py_CLEAR(all);
        }
    }
    return all;
}

/* ---- what Python has found ------------------------------------------------------------------- */

/* type: the std::type_info of FunctionPostHook. */
static void fill_table(const void *type)
{
    static void (*const destroy)(struct native_hook *) = destroy_hook;
    static struct native_tensors (*const call)(struct native_hook *, struct native_tensors *,
                                               const struct native_tensors *) = call_hook;
    at.table[0] = NULL; /* the object begins where it begins */
    at.table[1] = type;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        memcpy(&at.table[BEFORE + i], &destroy, sizeof(destroy));
    }
    memcpy(&at.table[BEFORE + CALL], &call, sizeof(call));
}

static void take_functions(const unsigned long long address[7])
{
    void *places[] = {&at.wrap,       &at.next_number, &at.gradient,
                      &at.new_memory, &at.free_memory, &at.grad_fn};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        void *function = (void *)(uintptr_t)address[i];
        memcpy(places[i], &function, sizeof(function));
    }
    fill_table((void *)(uintptr_t)address[6]);
}

PyObject *native_know_nodes(PyObject *module, PyObject *args)
{
    Py_ssize_t place[11];
    unsigned long long usual, undefined, hook, address[7];
    PyObject *custom, *example;
    (void)module;
    at.on = false;
    if (PyTuple_Size(args) == 0) {
        return Py_NewRef(Py_None);
    }
    if (!PyArg_ParseTuple(args, "(nnnnnnnnnnn)KKK(KKKKKKK)O!O:know_nodes", &place[0], &place[1],
                          &place[2], &place[3], &place[4], &place[5], &place[6], &place[7],
                          &place[8], &place[9], &place[10], &usual, &undefined, &hook, &address[0],
                          &address[1], &address[2], &address[3], &address[4], &address[5],
                          &address[6], &PyType_Type, &custom, &example)) {
        return NULL;
    }
    size_t *places[] = {&at.node,       &at.number, &at.edges, &at.pre_hooks, &at.tensor_pre_hooks,
                        &at.post_hooks, &at.edge,   &at.leaf,  &at.keys,      &at.versions,
                        &at.version};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        *places[i] = (size_t)place[i];
    }
    native_swap((PyObject **)&at.custom, Py_NewRef(custom));
    at.usual = usual;
    at.undefined = (void *)(uintptr_t)undefined;
    at.python_hook = (const void *const *)(uintptr_t)hook;
    take_functions(address);
    void *tensor = native_tensor_of(example);
    const void *node = tensor ? native_grad_fn(tensor) : NULL;
    at.custom_kind = node ? native_node_kind(node) : NULL;
    at.on = node;
    return Py_NewRef(Py_None);
}

/* ---- trying it ------------------------------------------------------------------------------- */

/* What a hook has seen of one node. */
struct trial {
    struct native_hook hook;
    PyObject *seen; /* list */
};

static void note_trial(const struct native_hook *hook, const struct native_tensors *outputs,
                       const struct native_tensors *inputs)
{
    struct trial *trial = hook->ctx;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *out = native_wrap_all(outputs), *in = out ? native_wrap_all(inputs) : NULL;
    PyObject *both = in ? PyTuple_Pack(2, out, in) : NULL;
    if (!both || PyList_Append(trial->seen, both) < 0) {
        PyErr_Clear(); /* the list shows that nothing was seen */
    }
    Py_XDECREF(both);
    Py_XDECREF(in);
    Py_XDECREF(out);
    PyGILState_Release(state);
}

/* What is read of a node: its edges as (node, input), and so on. */
static PyObject *describe_node(void *node)
{
    PyObject *edges = PyList_New(0);
    for (size_t i = 0; edges && i < native_edge_count(node); i++) {
        uint32_t input;
        void *following = native_edge(node, i, &input);
        PyObject *edge = Py_BuildValue("NI", PyLong_FromVoidPtr(following), input);
        if (!edge || PyList_Append(edges, edge) < 0) {
            Py_CLEAR(edges);
        }
        Py_XDECREF(edge);
    }
    return edges ? Py_BuildValue("NNKNN", PyLong_FromVoidPtr(node), edges,
                                 (unsigned long long)native_node_number(node),
                                 PyBool_FromLong(native_has_pre_hooks(node)),
                                 PyLong_FromUnsignedLong(count_post_hooks(node, false)))
                 : NULL;
}

PyObject *native_try_node(PyObject *module, PyObject *args)
{
    PyObject *function, *pass;
    struct trial trial = {.hook = {.run = note_trial, .ctx = &trial}};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:try_node", &function, &pass)) {
        return NULL;
    }
    void *node = at.on ? native_node_of(function) : NULL;
    if (!node) {
        PyErr_SetString(PyExc_TypeError,
                        "it is not a grad_fn of PyTorch's own, or nothing is known of nodes");
        return NULL;
    }
    PyObject *found = describe_node(node);
    trial.seen = found ? PyList_New(0) : NULL;
    native_prepare_hook(&trial.hook);
    bool attached = trial.seen && native_attach(node, &trial.hook);
    PyObject *done = attached ? PyObject_CallNoArgs(pass) : NULL;
    if (attached) {
        native_detach(node, &trial.hook);
    }
    PyObject *both = done ? PyTuple_Pack(2, found, trial.seen) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(trial.seen);
    Py_XDECREF(found);
    return both;
}

PyObject *native_made_by(PyObject *module, PyObject *tensor)
{
    void *address = native_tensor_of(tensor);
    const void *node = address ? native_grad_fn(address) : NULL;
    (void)module;
    return node ? Py_BuildValue("NN", PyLong_FromVoidPtr((void *)(uintptr_t)node),
                                PyBool_FromLong(native_is_custom(node)))
                : Py_NewRef(Py_None);
}
