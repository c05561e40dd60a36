// SPDX-License-Identifier: MIT
#include "native.h"

struct native_names native_names;
PyTypeObject *native_context_type;

static const struct {
    PyObject **place;
    const char *text;
} texts[] = {
    {&native_names.intercept, "intercept"}, {&native_names.operator_raised, "operator_raised"},
    {&native_names.operator_ran, "operator_ran"}, {&native_names.usual, "usual"},
    {&native_names.name, "name"}, {&native_names.looking, "looking"},
    {&native_names.shards, "shards"}, {&native_names.overflow, "overflow"},
    {&native_names.detail, "detail"}, {&native_names.dead, "dead"},
    {&native_names.in_backward, "in_backward"}, {&native_names.timing, "timing"},
    {&native_names.on, "on"}, {&native_names.telling, "telling"}, {&native_names.graph, "graph"},
    {&native_names.steps, "steps"}, {&native_names.step, "step"},
    {&native_names.forward, "forward"}, {&native_names.running, "running"},
    {&native_names.scaler, "scaler"}, {&native_names.stepping, "stepping"},
    {&native_names.scaling, "scaling"}, {&native_names.live, "live"},
    {&native_names.modules, "modules"}, {&native_names.local, "local"},
    {&native_names.path, "path"}, {&native_names.site, "site"},
    {&native_names.families, "_families"}, {&native_names.nodes, "nodes"},
    {&native_names.count, "count"}, {&native_names.learnt, "learnt"}, {&native_names.id, "id"},
    {&native_names.aside, "aside"}, {&native_names.ran, "ran"}, {&native_names.grown, "grown"},
    {&native_names.pending, "_pending"}, {&native_names.asked, "asked"},
    {&native_names.wants, "wants"}, {&native_names.places, "places"},
    {&native_names.forms, "_forms"}, {&native_names.address, "address"},
    {&native_names.away, "away"}, {&native_names.now, "_now"}, {&native_names.step_, "_step"},
    {&native_names.scales, "_scales"}, {&native_names.scale, "scale"}, {&native_names.kept, "kept"},
    {&native_names.origins, "_origins"}, {&native_names.mark, "mark"},
    {&native_names.metadata, "metadata"}, {&native_names.key, "gradb"},
    {&native_names.grad_fn, "grad_fn"}, {&native_names.requires_grad, "requires_grad"},
    {&native_names.version, "_version"}, {&native_names.shape, "shape"},
    {&native_names.stride, "stride"}, {&native_names.dtype, "dtype"},
    {&native_names.is_cpu, "is_cpu"}, {&native_names.is_neg, "is_neg"},
    {&native_names.storage_offset, "storage_offset"}, {&native_names.nbytes, "nbytes"},
    {&native_names.data_ptr, "data_ptr"}, {&native_names.look, "_look"},
    {&native_names.fault, "fault"}, {&native_names.out, "out"}, {&native_names.inplace, "inplace"},
    {&native_names.lasting, "_lasting"}, {&native_names.grad, "grad"},
    {&native_names.gradient, "gradient"},
    {
        &native_names.operator,
        "operator" },
        {&native_names.node, "node"},
        {&native_names.backward, "backward"},
        {&native_names.variable, "variable"},
        {&native_names.accumulate, "AccumulateGrad"},
        {&native_names.next_functions, "next_functions"},
        {&native_names.register_hook, "register_hook"},
        {&native_names.backward_ran, "backward_ran"},
        {&native_names.enter, "__enter__"},
        {&native_names.exit, "__exit__"},
        {&native_names.gathered, "Gathered"},
        {&native_names.tell, "_tell"},
        {&native_names.hold, "_hold"},
        {&native_names.ran_as, "ran_as"},
        {&native_names.leaked, "leaked"},
        {&native_names.remove, "remove"},
    };

static PyMethodDef functions[] = {
    {"hook_all", native_hook_all, METH_VARARGS,
     "hook_all(context, roots, steps, handles, names): hooks the nodes of a backward pass"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gradb._native",
    .m_doc = "What the PyTorch agent does at every operator, in C.",
    .m_size = -1,
    .m_methods = functions,
};

static int intern_names(void)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (!*texts[i].place && !(*texts[i].place = PyUnicode_InternFromString(texts[i].text))) {
            return -1;
        }
    }
    return 0;
}

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
    PyObject *context = add_type(module, &native_context_spec, "Context");
    PyObject *operators = add_type(module, &native_operators_spec, "Operators");
    PyObject *step = add_type(module, &native_step_spec, "Step");
    bool ok = context && operators && step;
    native_context_type = (PyTypeObject *)context; /* for good */
    Py_XDECREF(operators);
    Py_XDECREF(step);
    return ok ? PyModule_AddIntConstant(module, "INTERFACE", NATIVE_INTERFACE) : -1;
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = intern_names() == 0 ? PyModule_Create(&definition) : NULL;
    if (module && fill(module) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
