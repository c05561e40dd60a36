// SPDX-License-Identifier: MIT
/* Backward passes: the hooks of their nodes (the base of backward.Step), and putting them on. */
#include "native.h"

#include <stddef.h>
#include <structmember.h>

struct step {
    PyObject_HEAD struct native_context *context;
    /* As backward.Step documents them; NULL is None. */
    PyObject *type, *mark, *operation, *name, *variable, *incoming, *steps, *node;
    PyObject *hooks; /* dict of torch's that it is in */
    bool marked;
};

/* ---- a node of the pass has run -------------------------------------------------------------- */

/* The origins of the results, None where there is none. */
static PyObject *records_of(struct native_context *context, PyObject *node, PyObject *results)
{
    Py_ssize_t count = PyTuple_Size(results);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *tensor = PyTuple_GetItem(results, slot);
        PyObject *record = tensor == Py_None ? Py_NewRef(Py_None)
                                             : native_produced(context, tensor, node, (long)slot);
        bool ok = record && (tensor == Py_None || native_mark(tensor, node) == 0);
        if (!ok) {
            Py_XDECREF(record);
            Py_CLEAR(records);
        } else {
            PyTuple_SetItem(records, slot, record); /* takes it over */
        }
    }
    return records;
}

/* 1, 0, or -1: the result of that step, which goes into `own`, is among the node's edges: at that
 * place, or for a gradient anywhere. */
static int is_edge(const struct step *own, PyObject *edges, PyObject *pair, Py_ssize_t place)
{
    const struct step *from = (const struct step *)PyTuple_GetItem(pair, 0);
    Py_ssize_t count = PyTuple_Size(edges);
    Py_ssize_t last = own->variable || place >= count ? count : place + 1;
    int same = 0;
    for (Py_ssize_t i = own->variable ? 0 : place; same == 0 && i < last; i++) {
        PyObject *edge = PyTuple_GetItem(edges, i);
        if (edge != Py_None && PyTuple_GetItem(edge, 0) == from->node) {
            same =
                PyObject_RichCompareBool(PyTuple_GetItem(edge, 1), PyTuple_GetItem(pair, 1), Py_EQ);
        }
    }
    return same;
}

/* 1, 0, or -1: what ran before it is as it was the last time. Several passes may go into a
 * gradient: each of them is part of its edges. */
static int joins_same(const struct step *own, PyObject *edges)
{
    if (!own->incoming || !PyList_Check(own->incoming)) {
        return 0;
    }
    Py_ssize_t place = 0;
    int same = 1;
    for (Py_ssize_t i = 0; same > 0 && i < PyList_Size(own->incoming); i++) {
        PyObject *pair = PyList_GetItem(own->incoming, i);
        if (((const struct step *)PyTuple_GetItem(pair, 0))->node) {
            same = is_edge(own, edges, pair, place++);
        }
    }
    return same > 0 && !own->variable ? place == PyTuple_Size(edges) : same;
}

/* The node's edges are those of this pass. */
static int join(struct step *own, PyObject *node)
{
    PyObject *edges = Py_NewRef(native_get(node, NODE_EDGES));
    int same = PyTuple_Check(edges) ? joins_same(own, edges) : 0;
    Py_DECREF(edges);
    return same == 0
               ? native_call(own->context->telling, native_names.joins, (PyObject *)own, node, NULL)
               : (same > 0) - 1;
}

/* 1: told; 0: it is for Python; -1. */
static int node_ran(struct step *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    if (!own->name || !PyTuple_Check(results) || !PyTuple_Check(before)) {
        return 0;
    }
    PyObject *node = native_next_known(context, own->name, false);
    if (!node) {
        return PyErr_Occurred() ? -1 : 0;
    }
    native_swap(&own->node, Py_NewRef(node));
    PyObject *records = join(own, node) == 0 ? records_of(context, node, results) : NULL;
    int status = records ? 0 : -1;
    if (records && PyTuple_Size(records) > 0) {
        status = native_ran(context, node, results, records, before);
    }
    Py_XDECREF(records);
    Py_DECREF(node);
    return status < 0 ? -1 : 1;
}

/* The node of a parameter's gradient; NULL without an exception: it is for Python. */
static PyObject *gradient_node(struct native_context *context, PyObject *variable)
{
    PyObject *key = PyLong_FromVoidPtr(variable);
    PyObject *origin =
        key ? PyDict_GetItemWithError(native_get(context->graph, GRAPH_LASTING), key) : NULL;
    PyObject *node = Py_None;
    if (origin && PyWeakref_GetObject(PyTuple_GetItem(origin, ORIGIN_TENSOR)) == variable) {
        node = native_get(PyTuple_GetItem(origin, ORIGIN_NODE), NODE_GRADIENT);
    }
    Py_XDECREF(key);
    return node != Py_None ? Py_NewRef(node) : NULL;
}

static int tell_gradient(struct native_context *context, PyObject *node, PyObject *gradient,
                         PyObject *before)
{
    PyObject *origin = native_produced(context, gradient, node, 0);
    PyObject *records = origin ? PyTuple_Pack(1, origin) : NULL;
    PyObject *tensors = records ? PyTuple_Pack(1, gradient) : NULL;
    int status = tensors ? native_ran(context, node, tensors, records, before) : -1;
    Py_XDECREF(tensors);
    Py_XDECREF(records);
    Py_XDECREF(origin);
    return status;
}

/* The same where a pass ends, in a leaf that accumulates. */
static int gradient_ran(struct step *own, PyObject *before)
{
    PyObject *node = gradient_node(own->context, own->variable);
    if (!node || !PyTuple_Check(before)) {
        Py_XDECREF(node);
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *gradient = PyObject_GetAttr(own->variable, native_names.grad);
    int status = gradient ? 1 : -1;
    if (gradient && gradient != Py_None) {
        native_swap(&own->node, Py_NewRef(node));
        status = join(own, node) < 0 ? -1 : tell_gradient(own->context, node, gradient, before);
        status = status < 0 ? -1 : 1;
    }
    Py_XDECREF(gradient);
    Py_DECREF(node);
    return status;
}

/* ---- the hook -------------------------------------------------------------------------------- */

/* The operators inside are not the program's. */
static int ran_unseen(struct step *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    int looking = native_is(context->agent, AGENT_LOOKING);
    PyObject *apart = looking < 0 ? NULL : native_enter_apart(context);
    if (!apart) {
        return -1;
    }
    native_set(context->agent, AGENT_LOOKING, Py_False);
    int status = own->variable ? gradient_ran(own, before) : node_ran(own, results, before);
    if (native_leave_apart(apart) < 0) {
        status = -1;
    }
    if (looking && native_is(context->agent, AGENT_DEAD) == 0) {
        native_set(context->agent, AGENT_LOOKING, Py_True);
    }
    return status;
}

static int ran(struct step *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    int dead = native_is(context->agent, AGENT_DEAD);
    if (dead != 0) {
        return dead < 0 ? -1 : 0;
    }
    int close = native_is_watched_closely(context);
    int status = close == 0 ? ran_unseen(own, results, before) : close < 0 ? -1 : 0;
    if (status != 0) {
        return status;
    }
    return native_call(context->telling, native_names.backward_ran, (PyObject *)own, results,
                       before);
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct step *own = (struct step *)self;
    PyObject *results, *before;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OO:Step", &results, &before)) {
        return NULL;
    }
    /* The handle goes where the agent is closed; what is held here lasts for this call. */
    struct native_context *context = (struct native_context *)Py_XNewRef((PyObject *)own->context);
    int status = context && context->handle ? ran(own, results, before) : 0;
    if (status < 0) {
        status = native_fault(context);
    }
    Py_XDECREF((PyObject *)context);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- putting it on and taking it off --------------------------------------------------------- */

/* In place of torch.autograd.Function._register_hook(hooks, hook): a Step goes in as its own key
 * and its own handle, which costs a fifth of a RemovableHandle. `pair`: (the function that does it
 * for all others, collections.OrderedDict). */
static PyObject *register_hook(PyObject *pair, PyObject *args)
{
    PyObject *hooks, *hook;
    if (!PyArg_ParseTuple(args, "OO:_register_hook", &hooks, &hook)) {
        return NULL;
    }
    struct step *own = PyObject_TypeCheck(hook, native_step_type) ? (struct step *)hook : NULL;
    if (!own || own->hooks) {
        return PyObject_CallObject(PyTuple_GetItem(pair, 0), args);
    }
    hooks = hooks == Py_None ? PyObject_CallNoArgs(PyTuple_GetItem(pair, 1)) : Py_NewRef(hooks);
    if (!hooks || PyObject_SetItem(hooks, hook, hook) < 0) {
        Py_XDECREF(hooks);
        return NULL;
    }
    own->hooks = Py_NewRef(hooks);
    PyObject *both = PyTuple_Pack(2, hooks, hook);
    Py_DECREF(hooks);
    return both;
}

PyObject *native_registrar(PyObject *module, PyObject *args)
{
    static PyMethodDef definition = {"_register_hook", register_hook, METH_VARARGS,
                                     "as torch.autograd.Function._register_hook"};
    PyObject *others, *kind;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:registrar", &others, &kind)) {
        return NULL;
    }
    PyObject *pair = PyTuple_Pack(2, others, kind);
    PyObject *function = pair ? PyCFunction_NewEx(&definition, pair, NULL) : NULL;
    Py_XDECREF(pair);
    return function;
}

static PyObject *remove_step(PyObject *self, PyObject *none)
{
    PyObject *hooks = ((struct step *)self)->hooks;
    (void)none;
    ((struct step *)self)->hooks = NULL;
    int status = hooks ? PyObject_DelItem(hooks, self) : 0;
    if (status < 0 && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear(); /* somebody was faster */
        status = 0;
    }
    Py_XDECREF(hooks);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the nodes of a pass --------------------------------------------------------------------- */

struct pass {
    struct native_context *context;
    PyObject *steps, *handles, *names;
    PyObject *incoming; /* dict: grad_fn -> the list that its Step has as incoming */
    PyObject *waiting;  /* list of (grad_fn, mark that it inherits) */
};

/* What the class of a grad_fn is called. */
static PyObject *type_of(const struct pass *pass, PyObject *function)
{
    PyObject *type = PyDict_GetItemWithError(pass->context->types, (PyObject *)Py_TYPE(function));
    if (type || PyErr_Occurred()) {
        return Py_XNewRef(type);
    }
    return PyObject_CallFunctionObjArgs(pass->context->type_of, function, NULL);
}

/* The mark that it has, or inherits: see backward.Step. */
static PyObject *mark_of(const struct pass *pass, PyObject *function, PyObject *inherited,
                         bool *marked)
{
    PyObject *metadata = PyObject_GetAttr(function, native_names.metadata);
    PyObject *mark =
        metadata ? Py_XNewRef(PyDict_GetItemWithError(metadata, native_names.key)) : NULL;
    Py_XDECREF(metadata);
    *marked = mark && native_is_a(mark, NATIVE_MARK);
    if (*marked || PyErr_Occurred()) {
        return mark;
    }
    Py_XDECREF(mark);
    int custom = PyObject_IsInstance(function, pass->context->custom_type);
    if (custom < 0) {
        return NULL;
    }
    return custom
               ? PyObject_CallFunctionObjArgs(pass->context->custom_mark, function, inherited, NULL)
               : Py_NewRef(inherited);
}

/* How many of the pass have that name by now, this one among them. */
static long count_name(const struct pass *pass, PyObject *name)
{
    PyObject *before = PyDict_GetItemWithError(pass->names, name);
    long count = before ? PyLong_AsLong(before) + 1 : 1;
    PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromLong(count);
    int status = number ? PyDict_SetItem(pass->names, name, number) : -1;
    Py_XDECREF(number);
    return status < 0 ? -1 : count;
}

/* The name of a node's backward node, worked out once. */
static PyObject *backward_name(PyObject *node)
{
    PyObject *name = native_get(node, NODE_BACKWARD);
    if (name != Py_None) {
        return Py_NewRef(name);
    }
    name = PyUnicode_FromFormat("backward/%U", native_get(node, NODE_NAME));
    if (name) {
        native_set(node, NODE_BACKWARD, name);
    }
    return name;
}

/* As backward.Step.name_it, of a node that is known. */
static int name_after(const struct pass *pass, struct step *own, PyObject *node)
{
    PyObject *name = backward_name(node);
    int inner = name ? !own->marked || PyDict_Contains(pass->names, name) : 0;
    if (inner) {
        PyObject *longer = PyUnicode_FromFormat("%U/%U", name, own->type);
        Py_DECREF(name);
        name = longer;
    }
    long count = name ? count_name(pass, name) : -1;
    if (count > 1) {
        PyObject *longer = PyUnicode_FromFormat("%U_%ld", name, count - 1);
        Py_DECREF(name);
        name = longer;
    }
    own->name = count < 0 ? NULL : name;
    if (count < 0) {
        Py_XDECREF(name);
    }
    return own->name ? 0 : -1;
}

static int name_it(const struct pass *pass, struct step *own)
{
    if (!own->mark || own->variable) {
        return 0;
    }
    PyObject *node = native_get(own->mark, MARK_NODE);
    return node != Py_None ? name_after(pass, own, node) : 0;
}

/* All that is known of a grad_fn before it runs. */
static int describe(const struct pass *pass, struct step *own, PyObject *function,
                    PyObject *inherited)
{
    own->context = (struct native_context *)Py_NewRef((PyObject *)pass->context);
    own->steps = Py_NewRef(pass->steps);
    own->type = type_of(pass, function);
    own->mark = own->type ? mark_of(pass, function, inherited, &own->marked) : NULL;
    if (!own->mark) {
        return -1;
    }
    if (own->mark == Py_None) {
        Py_CLEAR(own->mark);
    }
    int leaf = PyObject_RichCompareBool(own->type, native_names.accumulate_grad, Py_EQ);
    if (leaf > 0) {
        own->variable = PyObject_GetAttr(function, native_names.variable);
        leaf = own->variable ? leaf : -1;
    }
    if (leaf >= 0) {
        own->operation = Py_NewRef(own->mark ? native_get(own->mark, MARK_OPERATOR) : own->type);
    }
    return own->operation ? name_it(pass, own) : -1;
}

static int wait_for(const struct pass *pass, PyObject *function, PyObject *mark)
{
    PyObject *pair = PyTuple_Pack(2, function, mark ? mark : Py_None);
    int status = pair ? PyList_Append(pass->waiting, pair) : -1;
    Py_XDECREF(pair);
    return status;
}

/* The list for what goes into a grad_fn; borrowed. */
static PyObject *incoming_of(const struct pass *pass, PyObject *function)
{
    PyObject *list = PyDict_GetItemWithError(pass->incoming, function);
    if (list || PyErr_Occurred()) {
        return list;
    }
    list = PyList_New(0);
    int status = list ? PyDict_SetItem(pass->incoming, function, list) : -1;
    Py_XDECREF(list); /* the dict has it */
    return status < 0 ? NULL : list;
}

static int goes_into(const struct pass *pass, struct step *own, Py_ssize_t slot, PyObject *function)
{
    PyObject *list = incoming_of(pass, function);
    PyObject *number = list ? PyLong_FromSsize_t(slot) : NULL;
    PyObject *pair = number ? PyTuple_Pack(2, (PyObject *)own, number) : NULL;
    int status = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(number);
    return status;
}

/* What follows it waits, but for what was met. */
static int add_following(const struct pass *pass, PyObject *function, struct step *own)
{
    PyObject *edges = PyObject_GetAttr(function, native_names.next_functions);
    Py_ssize_t count = edges ? PyTuple_Size(edges) : -1;
    int status = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < count; i++) {
        PyObject *following = PyTuple_GetItem(PyTuple_GetItem(edges, i), 0);
        int met = !following             ? -1
                  : following == Py_None ? 1
                                         : PyDict_Contains(pass->steps, following);
        status = met < 0 ? -1 : met ? 0 : wait_for(pass, following, own->mark);
        if (status == 0 && following != Py_None) {
            status = goes_into(pass, own, i, following);
        }
    }
    Py_XDECREF(edges);
    return status;
}

static int hook(const struct pass *pass, PyObject *function, PyObject *inherited)
{
    struct step *own = (struct step *)PyObject_CallNoArgs(pass->context->step_type);
    int status = own ? describe(pass, own, function, inherited) : -1;
    if (status == 0) {
        own->incoming = Py_XNewRef(incoming_of(pass, function));
        status = own->incoming ? 0 : -1;
    }
    PyObject *handle =
        status == 0 ? PyObject_CallMethodObjArgs(function, native_names.register_hook, own, NULL)
                    : NULL;
    if (!handle || PyList_Append(pass->handles, handle) < 0 ||
        PyDict_SetItem(pass->steps, function, (PyObject *)own) < 0 ||
        add_following(pass, function, own) < 0) {
        status = -1;
    }
    Py_XDECREF(handle);
    Py_XDECREF((PyObject *)own);
    return status;
}

/* Takes the last one that waits. */
static int hook_next(const struct pass *pass, Py_ssize_t last)
{
    PyObject *pair = Py_XNewRef(PyList_GetItem(pass->waiting, last));
    if (!pair || PyList_SetSlice(pass->waiting, last, last + 1, NULL) < 0) {
        Py_XDECREF(pair);
        return -1;
    }
    PyObject *function = PyTuple_GetItem(pair, 0);
    int met = PyDict_Contains(pass->steps, function);
    int status = met < 0 ? -1 : met ? 0 : hook(pass, function, PyTuple_GetItem(pair, 1));
    Py_DECREF(pair);
    return status;
}

static int hook_from(const struct pass *pass, PyObject *roots)
{
    for (Py_ssize_t i = 0; i < PyList_Size(roots); i++) {
        if (wait_for(pass, PyList_GetItem(roots, i), NULL) < 0) {
            return -1;
        }
    }
    for (Py_ssize_t left; (left = PyList_Size(pass->waiting)) > 0;) {
        if (hook_next(pass, left - 1) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *native_hook_all(PyObject *module, PyObject *args)
{
    PyObject *context, *roots;
    struct pass pass;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O!O!O!:hook_all", &context, &PyList_Type, &roots, &PyDict_Type,
                          &pass.steps, &PyList_Type, &pass.handles, &PyDict_Type, &pass.names)) {
        return NULL;
    }
    if (!PyObject_TypeCheck(context, native_context_type)) {
        PyErr_SetString(PyExc_TypeError, "hook_all() takes a Context first");
        return NULL;
    }
    pass.context = (struct native_context *)context;
    pass.waiting = PyList_New(0);
    pass.incoming = PyDict_New();
    int status = pass.waiting && pass.incoming ? hook_from(&pass, roots) : -1;
    Py_XDECREF(pass.incoming);
    Py_XDECREF(pass.waiting);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the type -------------------------------------------------------------------------------- */

static const size_t references[] = {offsetof(struct step, context),
                                    offsetof(struct step, type),
                                    offsetof(struct step, mark),
                                    offsetof(struct step, operation),
                                    offsetof(struct step, name),
                                    offsetof(struct step, variable),
                                    offsetof(struct step, incoming),
                                    offsetof(struct step, steps),
                                    offsetof(struct step, node),
                                    offsetof(struct step, hooks),
                                    0};

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, references, visit, arg);
}

static int clear(PyObject *self)
{
    return native_drop(self, references);
}

static void dealloc(PyObject *self)
{
    native_dealloc(self, clear);
}

static PyMemberDef members[] = {
    {"type", T_OBJECT, offsetof(struct step, type), 0, NULL},
    {"mark", T_OBJECT, offsetof(struct step, mark), 0, NULL},
    {"marked", T_BOOL, offsetof(struct step, marked), 0, NULL},
    {"operator", T_OBJECT, offsetof(struct step, operation), 0, NULL},
    {"name", T_OBJECT, offsetof(struct step, name), 0, NULL},
    {"variable", T_OBJECT, offsetof(struct step, variable), 0, NULL},
    {"incoming", T_OBJECT, offsetof(struct step, incoming), 0, NULL},
    {"steps", T_OBJECT, offsetof(struct step, steps), 0, NULL},
    {"node", T_OBJECT, offsetof(struct step, node), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"remove", remove_step, METH_NOARGS, "as RemovableHandle.remove"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of backward.Step: the hook of a grad_fn, and its handle.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},           {Py_tp_call, call},
    {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},   {Py_tp_members, members},
    {Py_tp_methods, methods},   {0, NULL},
};

PyType_Spec native_step_spec = {
    .name = "gradb._native.Step",
    .basicsize = sizeof(struct step),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
