// SPDX-License-Identifier: MIT
#include "places.h"

#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

static long long read_long(PyObject *value)
{
    long long number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

/* All of its elements are inside its memory. */
static int is_whole(struct native_context *context, PyObject *tensor, long long reach,
                    long long size)
{
    long long offset =
        read_long(PyObject_CallMethodObjArgs(tensor, native_names.storage_offset, NULL));
    PyObject *storage = PyObject_CallFunctionObjArgs(context->storage, tensor, NULL);
    long long bytes =
        storage ? read_long(PyObject_CallMethodObjArgs(storage, native_names.nbytes, NULL)) : -1;
    Py_XDECREF(storage);
    return PyErr_Occurred() ? -1 : native_is_inside(offset, bytes, reach, size);
}

/* It still has its form, and all of it is there. */
static int is_as_known(struct native_context *context, PyObject *tensor, PyObject *form,
                       long long reach, long long size)
{
    int same = native_take_equal(PyObject_GetAttr(tensor, native_names.shape),
                                 PyTuple_GetItem(form, FORM_SHAPE));
    if (same > 0) {
        same = native_take_equal(PyObject_CallMethodObjArgs(tensor, native_names.stride, NULL),
                                 PyTuple_GetItem(form, FORM_STRIDES));
    }
    if (same > 0) {
        same = native_take_equal(PyObject_GetAttr(tensor, native_names.dtype),
                                 PyTuple_GetItem(form, FORM_DTYPE));
    }
    if (same > 0) {
        same = native_take_truth(PyObject_GetAttr(tensor, native_names.is_cpu));
    }
    return same > 0 ? is_whole(context, tensor, reach, size) : same;
}

static int take_address(PyObject *tensor, const void **ret)
{
    PyObject *address = PyObject_CallMethodObjArgs(tensor, native_names.data_ptr, NULL);
    *ret = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 1;
}

int native_locate(struct native_context *context, PyObject *tensor, PyObject *form,
                  gradb_tensor *ret)
{
    if (form == Py_None || PyTuple_Size(form) <= FORM_DENSE ||
        (PyObject *)Py_TYPE(tensor) != PyTuple_GetItem(form, FORM_KIND)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    long long reach = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_REACH));
    long long size = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_SIZE));
    const void *address = native_knows_nodes() ? native_tensor_of(tensor) : NULL;
    bool plain = address && native_is_plain(address);
    int negative = PyErr_Occurred() ? -1 : plain ? 0 : native_ask(tensor, native_names.is_neg);
    if (negative != 0) {
        return negative < 0 ? -1 : 0;
    }
    if (native_can_read(ret->dtype)) {
        return native_read(tensor, ret, reach, size, &ret->data);
    }
    int same = is_as_known(context, tensor, form, reach, size);
    return same > 0 ? take_address(tensor, &ret->data) : same;
}

static int locate_slot(struct native_context *context, PyObject *places, PyObject *form,
                       PyObject *tensor, Py_ssize_t slot, gradb_tensor *ret)
{
    bool none = tensor == Py_None && form == Py_None && ret->dtype == 0; /* as before */
    int placed = none ? 1 : native_locate(context, tensor, form, ret);
    if (placed != 0) {
        return placed < 0 ? -1 : 0;
    }
    PyObject *number = PyLong_FromSsize_t(slot);
    int status = number ? native_call(places, native_names.look, number, tensor, NULL) : -1;
    Py_XDECREF(number);
    return status;
}

/* 1: *ret has its address; 0: it is not as it was, or not there; -1. */
static int locate_unwrapped(struct native_context *context, PyObject *form, void *tensor,
                            gradb_tensor *ret)
{
    if (!native_is_defined(tensor)) {
        return form == Py_None && ret->dtype == 0;
    }
    if (form == Py_None || PyTuple_GetItem(form, FORM_KIND) != context->tensor ||
        !native_is_plain(tensor) || !native_can_read(ret->dtype)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    long long reach = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_REACH));
    long long size = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_SIZE));
    return PyErr_Occurred() ? -1 : native_read_at(tensor, ret, reach, size, &ret->data);
}

int native_fill_unwrapped(struct native_context *context, PyObject *places,
                          const struct native_tensors *tensors)
{
    gradb_tensor *structs = native_structs(places);
    PyObject *forms = native_get(places, PLACES_FORMS);
    int located = structs ? 1 : -1;
    for (size_t slot = 0; located > 0 && slot < native_tensor_count(tensors); slot++) {
        PyObject *form = PyList_GetItem(forms, (Py_ssize_t)slot);
        located = form ? locate_unwrapped(context, form, tensors->begin[slot], &structs[slot]) : -1;
    }
    return located;
}

gradb_tensor *native_structs(PyObject *places)
{
    return PyLong_AsVoidPtr(native_get(places, PLACES_ADDRESS));
}

int native_fill_places(struct native_context *context, PyObject *places, PyObject *tensors)
{
    gradb_tensor *structs = native_structs(places);
    int status = structs ? 0 : -1;
    for (Py_ssize_t slot = 0; status == 0 && slot < PyTuple_Size(tensors); slot++) {
        PyObject *form = Py_XNewRef(PyList_GetItem(native_get(places, PLACES_FORMS), slot));
        PyObject *tensor = PyTuple_GetItem(tensors, slot);
        status =
            form && tensor ? locate_slot(context, places, form, tensor, slot, &structs[slot]) : -1;
        Py_XDECREF(form);
    }
    return status;
}
