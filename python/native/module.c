// SPDX-License-Identifier: MIT
#include "native.h"

PyTypeObject *native_clearing_type, *native_context_type, *native_step_type;

static PyMethodDef functions[] = {
    {"hook_all", native_hook_all, METH_VARARGS,
     "hook_all(context, roots, steps, handles, names): hooks the nodes of a backward pass"},
    {"frame_setter", native_frame_setter, METH_VARARGS,
     "frame_setter(regions, original, wrapper): calls the wrapper where it has something to do"},
    {"registrar", native_registrar, METH_VARARGS,
     "registrar(others, type of dict): puts hooks on nodes, Steps without a handle of their own"},
    {"ran", native_tell_ran, METH_VARARGS,
     "ran(context, node, tensors, records): a node has run; records: None, or the origins"},
    {"read_by", native_read_by, METH_VARARGS,
     "read_by(addresses, strided, cpu, dtypes): libtorch's functions; () for none"},
    {"reads", native_reads, METH_VARARGS,
     "reads(tensor, struct, reach, size): its address when it is as the struct says, or None"},
    {"look_into", native_look_into, METH_VARARGS,
     "look_into(Tensor, Parameter, place, function, none): where a tensor's address and gradient "
     "are"},
    {"in_place", native_in_place, METH_VARARGS,
     "in_place(held, chain): whether it is where it was, see modules.Held"},
    {"looks", native_looks, METH_O,
     "looks(tensor): what its _cdata is, and whether it is known to have no gradient"},
    {"excepthook", native_excepthook, METH_O,
     "excepthook(function): a built-in function of sys that calls it, the last one given"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gradb._native",
    .m_doc = "What the PyTorch agent does at every operator, in C.",
    .m_size = -1,
    .m_methods = functions,
};

static PyObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

static int fill(PyObject *module)
{
    PyObject *clock = add_type(module, &native_clock_spec, "Clock");
    native_clock_type = (PyTypeObject *)clock; /* for good */
    PyObject *clearing = add_type(module, &native_clearing_spec, "Clearing");
    native_clearing_type = (PyTypeObject *)clearing; /* for good */
    PyObject *engine = add_type(module, &native_engine_spec, "Engine");
    PyObject *context = add_type(module, &native_context_spec, "Context");
    PyObject *operators = add_type(module, &native_operators_spec, "Operators");
    PyObject *step = add_type(module, &native_step_spec, "Step");
    PyObject *source = add_type(module, &native_source_spec, "Source");
    PyObject *entrance = add_type(module, &native_entrance_spec, "Entrance");
    bool ok = clock && clearing && engine && context && operators && step && source && entrance &&
              native_add_records(module) == 0;
    native_context_type = (PyTypeObject *)context; /* for good */
    Py_XDECREF(engine);
    native_step_type = (PyTypeObject *)step;
    Py_XDECREF(operators);
    Py_XDECREF(source);
    Py_XDECREF(entrance);
    return ok ? PyModule_AddIntConstant(module, "INTERFACE", NATIVE_INTERFACE) : -1;
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = native_intern_names() == 0 ? PyModule_Create(&definition) : NULL;
    if (module && fill(module) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
