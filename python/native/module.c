// SPDX-License-Identifier: MIT
#include "module.h"

#include "autograd.h"
#include "clearing.h"
#include "clock.h"
#include "context.h"
#include "frames.h"
#include "functions.h"
#include "hand_over.h"
#include "inputs.h"
#include "known_pass.h"
#include "names.h"
#include "pass_node.h"
#include "records.h"
#include "report.h"
#include "tensors.h"

static PyMethodDef module_functions[] = {
    {"hook_all", native_hook_all, METH_VARARGS,
     "hook_all(context, roots, steps, handles, names): hooks the nodes of a backward pass"},
    {"hook_known", native_hook_known, METH_VARARGS,
     "hook_known(context, roots): the Pass, with its hooks on, when it has run before; else what "
     "learn_pass needs, or None where passes cannot be learnt"},
    {"learn_pass", native_learn_pass, METH_VARARGS,
     "learn_pass(context, trace, roots, nodes): hook_known knows this pass from now on"},
    {"frame_setter", native_frame_setter, METH_VARARGS,
     "frame_setter(regions, original, wrapper): calls the wrapper only where it has something to "
     "do"},
    {"registrar", native_registrar, METH_VARARGS,
     "registrar(others, type of dict): puts hooks on nodes; a PassNode needs no handle of its own"},
    {"ran", native_report_ran, METH_VARARGS,
     "ran(context, node, tensors, records): a node has run; records: its origins, or None"},
    {"updated", native_updated, METH_VARARGS,
     "updated(context, told, optimizer, its states, its parameters): reports the updates whose "
     "nodes "
     "are known; returns the other parameters with gradients"},
    {"read_by", native_read_by, METH_VARARGS,
     "read_by(addresses, strided, cpu, dtypes): sets libtorch's functions; () for none"},
    {"reads", native_reads, METH_VARARGS,
     "reads(tensor, struct, reach, size): its address where the struct describes it, else None"},
    {"look_into", native_look_into, METH_VARARGS,
     "look_into(Tensor, Parameter, place, function, none): says where a tensor's address and "
     "gradient are"},
    {"know_nodes", native_know_nodes, METH_VARARGS,
     "know_nodes(places, keys, undefined tensor, hook, functions, type of custom ones, a result of "
     "one): says where "
     "the engine's nodes "
     "and "
     "tensors have what nodes.py has found; without arguments: nothing is known"},
    {"made_by", native_made_by, METH_O,
     "made_by(tensor): (its node, whether that is a custom function); None: it has none"},
    {"try_node", native_try_node, METH_VARARGS,
     "try_node(grad_fn, pass): what is read of a node, and what a hook on it sees of the pass"},
    {"hook_by", native_hook_by, METH_VARARGS,
     "hook_by(addresses, pop, push, types of functions and methods, aliases, "
     "handle_torch_function): "
     "sets what "
     "hook_functions needs"},
    {"handle_torch_function", (PyCFunction)(void (*)(void))native_handle,
     METH_FASTCALL | METH_KEYWORDS, "like torch.overrides.handle_torch_function"},
    {"handled", native_handled, METH_NOARGS,
     "the functions of which handle_torch_function calls the same again, outermost first"},
    {"hook_functions", native_hook_functions, METH_O,
     "hook_functions(mode): the C functions that the mode knows report to it without being asked; "
     "None: no more; returns whether they do"},
    {"in_place", native_in_place, METH_VARARGS,
     "in_place(held, chain): whether it still is where it was, see members.Held"},
    {"looks", native_looks, METH_O,
     "looks(tensor): its _cdata, and whether it certainly has no gradient"},
    {"excepthook", native_excepthook, METH_O,
     "excepthook(function): a built-in function of sys that calls the last function given"},
    {"frames_begin", native_frames_begin, METH_VARARGS,
     "frames_begin(decide, trace, chain, aside): traces this thread while a frame has a wanted "
     "line"},
    {"frames_trace", native_frames_trace, METH_O,
     "frames_trace(wanted): whether the running frames are traced"},
    {"frames_end", native_frames_end, METH_NOARGS, "frames_end(): ends frames_begin"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gradb._native",
    .m_doc = "What the PyTorch agent does at every operator, in C.",
    .m_size = -1,
    .m_methods = module_functions,
};

static const struct {
    PyType_Spec *spec;
    const char *name;
    PyTypeObject *
        *keep; /* the C variable that keeps the type for the life of the process; or NULL */
} types[] = {
    {&native_batch_spec, "Batch", NULL},
    {&native_clock_spec, "Clock", &native_clock_type},
    {&native_clearing_spec, "Clearing", &native_clearing_type},
    {&native_engine_spec, "Engine", NULL},
    {&native_context_spec, "Context", &native_context_type},
    {&native_operators_spec, "Operators", NULL},
    {&native_pass_node_spec, "PassNode", &native_pass_node_type},
    {&native_pass_spec, "Pass", &native_pass_type},
    {&native_source_spec, "Source", NULL},
    {&native_entrance_spec, "Entrance", NULL},
};

static int add_types(PyObject *module)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        PyObject *type = PyType_FromSpec(types[i].spec);
        if (!type || PyModule_AddObjectRef(module, types[i].name, type) < 0) {
            Py_XDECREF(type);
            return -1;
        }
        if (types[i].keep) {
            *types[i].keep = (PyTypeObject *)type;
        } else {
            Py_DECREF(type);
        }
    }
    return 0;
}

static int fill_module(PyObject *module)
{
    if (add_types(module) < 0 || native_add_records(module) < 0) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "INTERFACE", NATIVE_INTERFACE);
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = native_intern_names() == 0 ? PyModule_Create(&module_definition) : NULL;
    if (module && fill_module(module) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
