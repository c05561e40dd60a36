// SPDX-License-Identifier: MIT
/* Puts hooks on the nodes of a backward pass before it runs. */
#include "module.h"

#include "marks.h"
#include "names.h"
#include "objects.h"
#include "pass_node.h"
#include "records.h"

/* ---- the nodes of a pass --------------------------------------------------------------------- */

struct pass {
    struct native_context *context;
    PyObject *nodes, *handles, *names;
    PyObject *incoming; /* dict: grad_fn -> the list that is its PassNode's `incoming` */
    PyObject *waiting;  /* list of (grad_fn, inherited mark) */
};

/* The type name of a grad_fn. */
static PyObject *find_type(const struct pass *pass, PyObject *function)
{
    PyObject *type = PyDict_GetItemWithError(pass->context->types, (PyObject *)Py_TYPE(function));
    if (type || PyErr_Occurred()) {
        return Py_XNewRef(type);
    }
    return PyObject_CallFunctionObjArgs(pass->context->type_of, function, NULL);
}

static PyObject *find_in_metadata(PyObject *function)
{
    PyObject *metadata = PyObject_GetAttr(function, native_names.metadata);
    PyObject *mark =
        metadata ? Py_XNewRef(PyDict_GetItemWithError(metadata, native_names.key)) : NULL;
    Py_XDECREF(metadata);
    return mark;
}

/* The mark that the grad_fn has or inherits, see backward.PassNode. No operator returns what a leaf
 * accumulates, so the grad_fn that does that has none of its own. */
static PyObject *find_mark(const struct pass *pass, PyObject *function, PyObject *inherited,
                           bool leaf, bool *marked)
{
    *marked = false;
    if (leaf) {
        return Py_NewRef(inherited);
    }
    PyObject *mark = Py_XNewRef(native_find_mark(pass->context, function));
    if (!mark && !PyErr_Occurred()) {
        mark = find_in_metadata(function);
    }
    *marked = mark && native_is_a(mark, NATIVE_MARK);
    if (*marked || PyErr_Occurred()) {
        return mark;
    }
    Py_XDECREF(mark);
    bool custom = PyObject_TypeCheck(function, (PyTypeObject *)pass->context->custom_type);
    return custom
               ? PyObject_CallFunctionObjArgs(pass->context->custom_mark, function, inherited, NULL)
               : Py_NewRef(inherited);
}

/* How many nodes of the pass have that name by now, this one included. */
static long count_name(const struct pass *pass, PyObject *name)
{
    PyObject *before = PyDict_GetItemWithError(pass->names, name);
    long count = before ? PyLong_AsLong(before) + 1 : 1;
    PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromLong(count);
    int status = number ? PyDict_SetItem(pass->names, name, number) : -1;
    Py_XDECREF(number);
    return status < 0 ? -1 : count;
}

/* The name of a node's backward node, computed once. */
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

/* Like backward.PassNode.name_it, for a node that is known. */
static int name_by_forward(const struct pass *pass, struct native_pass_node *own, PyObject *node)
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

static int name_node(const struct pass *pass, struct native_pass_node *own)
{
    if (!own->mark || own->variable) {
        return 0;
    }
    PyObject *node = native_get(own->mark, MARK_NODE);
    return node != Py_None ? name_by_forward(pass, own, node) : 0;
}

/* Fills in everything that is known of a grad_fn before it runs. */
static int describe_node(const struct pass *pass, struct native_pass_node *own, PyObject *function,
                         PyObject *inherited)
{
    own->context = (struct native_context *)Py_NewRef((PyObject *)pass->context);
    own->nodes = Py_NewRef(pass->nodes);
    own->type = find_type(pass, function);
    int leaf =
        own->type ? PyObject_RichCompareBool(own->type, native_names.accumulate_grad, Py_EQ) : -1;
    own->mark = leaf >= 0 ? find_mark(pass, function, inherited, leaf, &own->marked) : NULL;
    if (!own->mark) {
        return -1;
    }
    if (own->mark == Py_None) {
        Py_CLEAR(own->mark);
    }
    if (leaf > 0) {
        own->variable = PyObject_GetAttr(function, native_names.variable);
        leaf = own->variable ? leaf : -1;
    }
    if (leaf >= 0) {
        own->operation = Py_NewRef(own->mark ? native_get(own->mark, MARK_OPERATOR) : own->type);
    }
    return own->operation ? name_node(pass, own) : -1;
}

static int push_waiting(const struct pass *pass, PyObject *function, PyObject *mark)
{
    PyObject *pair = PyTuple_Pack(2, function, mark ? mark : Py_None);
    int status = pair ? PyList_Append(pass->waiting, pair) : -1;
    Py_XDECREF(pair);
    return status;
}

/* The list of what goes into a grad_fn; borrowed. */
static PyObject *find_incoming(const struct pass *pass, PyObject *function)
{
    PyObject *list = PyDict_GetItemWithError(pass->incoming, function);
    if (list || PyErr_Occurred()) {
        return list;
    }
    list = PyList_New(0);
    int status = list ? PyDict_SetItem(pass->incoming, function, list) : -1;
    Py_XDECREF(list); /* the dict holds it */
    return status < 0 ? NULL : list;
}

static int add_incoming(const struct pass *pass, struct native_pass_node *own, Py_ssize_t slot,
                        PyObject *function)
{
    PyObject *list = find_incoming(pass, function);
    PyObject *number = list ? PyLong_FromSsize_t(slot) : NULL;
    PyObject *pair = number ? PyTuple_Pack(2, (PyObject *)own, number) : NULL;
    int status = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(number);
    return status;
}

/* Queues what follows it, unless it was visited. */
static int add_following(const struct pass *pass, PyObject *function, struct native_pass_node *own)
{
    PyObject *edges = PyObject_GetAttr(function, native_names.next_functions);
    Py_ssize_t count = edges ? PyTuple_Size(edges) : -1;
    int status = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < count; i++) {
        PyObject *following = PyTuple_GetItem(PyTuple_GetItem(edges, i), 0);
        int met = !following             ? -1
                  : following == Py_None ? 1
                                         : PyDict_Contains(pass->nodes, following);
        status = met < 0 ? -1 : met ? 0 : push_waiting(pass, following, own->mark);
        if (status == 0 && following != Py_None) {
            status = add_incoming(pass, own, i, following);
        }
    }
    Py_XDECREF(edges);
    return status;
}

static int hook_node(const struct pass *pass, PyObject *function, PyObject *inherited)
{
    struct native_pass_node *own =
        (struct native_pass_node *)PyObject_CallNoArgs(pass->context->node_type);
    int status = own ? describe_node(pass, own, function, inherited) : -1;
    if (status == 0) {
        own->incoming = Py_XNewRef(find_incoming(pass, function));
        status = own->incoming ? 0 : -1;
    }
    PyObject *handle =
        status == 0 ? PyObject_CallMethodObjArgs(function, native_names.register_hook, own, NULL)
                    : NULL;
    if (!handle || PyList_Append(pass->handles, handle) < 0 ||
        PyDict_SetItem(pass->nodes, function, (PyObject *)own) < 0 ||
        add_following(pass, function, own) < 0) {
        status = -1;
    }
    Py_XDECREF(handle);
    Py_XDECREF((PyObject *)own);
    return status;
}

/* Hooks the last one in the queue. */
static int hook_next(const struct pass *pass, Py_ssize_t last)
{
    PyObject *pair = Py_XNewRef(PyList_GetItem(pass->waiting, last));
    if (!pair || PyList_SetSlice(pass->waiting, last, last + 1, NULL) < 0) {
        Py_XDECREF(pair);
        return -1;
    }
    PyObject *function = PyTuple_GetItem(pair, 0);
    int met = PyDict_Contains(pass->nodes, function);
    int status = met < 0 ? -1 : met ? 0 : hook_node(pass, function, PyTuple_GetItem(pair, 1));
    Py_DECREF(pair);
    return status;
}

static int hook_from(const struct pass *pass, PyObject *roots)
{
    for (Py_ssize_t i = 0; i < PyList_Size(roots); i++) {
        if (push_waiting(pass, PyList_GetItem(roots, i), NULL) < 0) {
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
    PyObject *roots;
    struct pass pass;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!:hook_all", native_context_type, &pass.context,
                          &PyList_Type, &roots, &PyDict_Type, &pass.nodes, &PyList_Type,
                          &pass.handles, &PyDict_Type, &pass.names)) {
        return NULL;
    }
    pass.waiting = PyList_New(0);
    pass.incoming = PyDict_New();
    int status = pass.waiting && pass.incoming ? hook_from(&pass, roots) : -1;
    Py_XDECREF(pass.incoming);
    Py_XDECREF(pass.waiting);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- putting it on and taking it off --------------------------------------------------------- */

/* Replaces torch.autograd.Function._register_hook(hooks, hook): a PassNode goes in as its own key
 * and its own handle, which costs a fifth of a RemovableHandle. pair: (the function that does it
 * for all other hooks, collections.OrderedDict). */
static PyObject *register_hook(PyObject *pair, PyObject *args)
{
    PyObject *hooks, *hook;
    if (!PyArg_ParseTuple(args, "OO:_register_hook", &hooks, &hook)) {
        return NULL;
    }
    struct native_pass_node *own =
        PyObject_TypeCheck(hook, native_pass_node_type) ? (struct native_pass_node *)hook : NULL;
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
                                     "like torch.autograd.Function._register_hook"};
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
