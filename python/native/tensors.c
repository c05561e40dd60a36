// SPDX-License-Identifier: MIT
#include "tensors.h"

#include <stdint.h>
#include <string.h>

#include "autograd.h"
#include "names.h"
#include "objects.h"

typedef int (*get_number)(void *tensor, int32_t *ret);
typedef int (*get_count)(void *tensor, int64_t *ret);
typedef int (*get_counts)(void *tensor, int64_t **ret);
typedef int (*get_pointer)(void *tensor, void **ret);
typedef bool (*get_mode)(void);
typedef void **(*get_tensor)(void *tensor); /* returns the place of another tensor's address */

#define DTYPES 32 /* more than enum gradb_dtype has members */

static struct {
    bool on;
    get_count dim, storage_offset, storage_size;
    get_counts sizes, strides;
    get_number dtype, layout, device_type;
    get_pointer data_ptr;
    get_mode grad_mode;
    int32_t strided, cpu;
    int32_t dtypes[DTYPES]; /* gradb's number -> libtorch's; -1: none */
} torch;

/* What libtorch has no such function for, as libtorch.py has found it. */
static struct {
    PyTypeObject *tensor, *parameter;
    size_t place;    /* offset of the Tensor in an object of these types; 0: unknown */
    get_tensor grad; /* NULL: unknown */
    void *none;      /* the Tensor that stands for "no gradient" */
} inside;

/* ---- one tensor ------------------------------------------------------------------------------ */

static bool is_plain(PyObject *tensor)
{
    const PyTypeObject *type = Py_TYPE(tensor);
    return inside.place && (type == inside.tensor || type == inside.parameter);
}

/* What libtorch calls an AtenTensorHandle is the address of its Tensor, which is a single pointer:
 * this one. */
static int get_handle(PyObject *tensor, void **ret)
{
    if (is_plain(tensor)) {
        memcpy(ret, (const char *)tensor + inside.place, sizeof(*ret));
        return 0;
    }
    PyObject *number = PyObject_GetAttr(tensor, native_names.cdata);
    *ret = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    return PyErr_Occurred() || !*ret ? -1 : 0;
}

static bool is_strided_on_cpu(void **tensor)
{
    int32_t layout, device;
    return torch.layout(tensor, &layout) == 0 && layout == torch.strided &&
           torch.device_type(tensor, &device) == 0 && device == torch.cpu;
}

static bool has_dtype(void **tensor, gradb_dtype dtype)
{
    int32_t number;
    return torch.dtype(tensor, &number) == 0 && number == torch.dtypes[dtype];
}

static bool has_shape(void **tensor, const gradb_tensor *known, long long size)
{
    int64_t rank, *lengths, *strides;
    if (torch.dim(tensor, &rank) != 0 || rank != known->rank ||
        torch.sizes(tensor, &lengths) != 0 || torch.strides(tensor, &strides) != 0) {
        return false;
    }
    for (int64_t axis = 0; axis < rank; axis++) {
        if (lengths[axis] != known->shape[axis] || strides[axis] * size != known->strides[axis]) {
            return false;
        }
    }
    return true;
}

bool native_is_inside(long long offset, long long bytes, long long reach, long long size)
{
    return offset >= 0 && reach >= 0 && reach <= bytes && size > 0 &&
           offset <= (bytes - reach) / size;
}

/* All of its elements are inside its memory. */
static bool is_whole(void **tensor, long long reach, long long size)
{
    int64_t offset, bytes;
    return torch.storage_offset(tensor, &offset) == 0 && torch.storage_size(tensor, &bytes) == 0 &&
           native_is_inside(offset, bytes, reach, size);
}

/* Its memory has that size, and is shared with no other tensor. */
static bool is_alone(void **tensor, long long size)
{
    int64_t offset, bytes;
    return torch.storage_offset(tensor, &offset) == 0 && torch.storage_size(tensor, &bytes) == 0 &&
           offset == 0 && bytes == size;
}

bool native_can_read(gradb_dtype dtype)
{
    return torch.on && (unsigned)dtype < DTYPES && torch.dtypes[dtype] >= 0;
}

bool native_read_at(void *tensor, const gradb_tensor *known, long long reach, long long size,
                    const void **ret)
{
    void *data;
    if (!is_strided_on_cpu(&tensor) || !has_dtype(&tensor, known->dtype) ||
        !has_shape(&tensor, known, size) || !is_whole(&tensor, reach, size) ||
        torch.data_ptr(&tensor, &data) != 0) {
        return false;
    }
    *ret = data;
    return true;
}

int native_read(PyObject *tensor, const gradb_tensor *known, long long reach, long long size,
                const void **ret)
{
    void *handle;
    return get_handle(tensor, &handle) < 0 ? -1 : native_read_at(handle, known, reach, size, ret);
}

void *native_tensor_of(PyObject *tensor)
{
    void *handle = NULL;
    return is_plain(tensor) && get_handle(tensor, &handle) == 0 ? handle : NULL;
}

static bool read_number(void **tensor, double *ret)
{
    int64_t rank;
    void *data;
    bool is_short = has_dtype(tensor, GRADB_FLOAT32);
    long long size = is_short ? (long long)sizeof(float) : (long long)sizeof(double);
    if ((!is_short && !has_dtype(tensor, GRADB_FLOAT64)) || torch.dim(tensor, &rank) != 0 ||
        rank != 0 || !is_alone(tensor, size) || torch.data_ptr(tensor, &data) != 0) {
        return false;
    }
    if (is_short) {
        float value;
        memcpy(&value, data, sizeof(value));
        *ret = (double)value;
    } else {
        memcpy(ret, data, sizeof(*ret));
    }
    return true;
}

int native_read_number(PyObject *tensor, double *ret)
{
    void *handle;
    if (!torch.on) {
        return 0;
    }
    if (get_handle(tensor, &handle) < 0) {
        return -1;
    }
    return is_strided_on_cpu(&handle) && read_number(&handle, ret);
}

int native_has_gradients(PyObject *is_enabled)
{
    return torch.on ? torch.grad_mode() : native_take_truth(PyObject_CallNoArgs(is_enabled));
}

bool native_has_no_gradient(PyObject *parameter)
{
    void *handle;
    return inside.grad && is_plain(parameter) && get_handle(parameter, &handle) == 0 &&
           *inside.grad(handle) == inside.none;
}

/* ---- asked through Python ---------------------------------------------------------------------
 */

PyObject *native_version(PyObject *tensor)
{
    const void *address = native_knows_nodes() ? native_tensor_of(tensor) : NULL;
    if (address) {
        return PyLong_FromUnsignedLong(native_count_writes(address));
    }
    PyObject *version = PyObject_GetAttr(tensor, native_names.version);
    if (!version && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
        version = PyLong_FromLong(0);
    }
    return version;
}

int native_ask(PyObject *tensor, PyObject *method)
{
    return native_take_truth(PyObject_CallMethodObjArgs(tensor, method, NULL));
}

/* ---- what Python says ------------------------------------------------------------------------ */

/* The addresses of the functions, in the order of libtorch.py. */
static bool take_functions(PyObject *functions)
{
    unsigned long long at[10];
    if (!PyArg_ParseTuple(functions, "KKKKKKKKKK:read_by", &at[0], &at[1], &at[2], &at[3], &at[4],
                          &at[5], &at[6], &at[7], &at[8], &at[9])) {
        return false;
    }
    torch.dim = (get_count)(uintptr_t)at[0];
    torch.sizes = (get_counts)(uintptr_t)at[1];
    torch.strides = (get_counts)(uintptr_t)at[2];
    torch.dtype = (get_number)(uintptr_t)at[3];
    torch.layout = (get_number)(uintptr_t)at[4];
    torch.device_type = (get_number)(uintptr_t)at[5];
    torch.storage_offset = (get_count)(uintptr_t)at[6];
    torch.storage_size = (get_count)(uintptr_t)at[7];
    torch.data_ptr = (get_pointer)(uintptr_t)at[8];
    torch.grad_mode = (get_mode)(uintptr_t)at[9];
    return true;
}

static bool take_dtypes(PyObject *dtypes)
{
    PyObject *ours, *theirs;
    memset(torch.dtypes, 0xff, sizeof(torch.dtypes));
    for (Py_ssize_t at = 0; PyDict_Next(dtypes, &at, &ours, &theirs);) {
        long place = PyLong_AsLong(ours), number = PyLong_AsLong(theirs);
        if (PyErr_Occurred()) {
            return false;
        }
        if (place >= 0 && place < DTYPES) {
            torch.dtypes[place] = (int32_t)number;
        }
    }
    return true;
}

PyObject *native_read_by(PyObject *module, PyObject *args)
{
    PyObject *functions, *dtypes;
    int strided, cpu;
    (void)module;
    torch.on = false;
    if (!PyArg_ParseTuple(args, "O!iiO!:read_by", &PyTuple_Type, &functions, &strided, &cpu,
                          &PyDict_Type, &dtypes)) {
        return NULL;
    }
    if (PyTuple_Size(functions) > 0) {
        torch.strided = strided;
        torch.cpu = cpu;
        torch.on = take_functions(functions) && take_dtypes(dtypes);
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *native_look_into(PyObject *module, PyObject *args)
{
    PyObject *tensor, *parameter;
    unsigned long long grad, none;
    Py_ssize_t place;
    (void)module;
    inside.place = 0;
    if (!PyArg_ParseTuple(args, "O!O!nKK:look_into", &PyType_Type, &tensor, &PyType_Type,
                          &parameter, &place, &grad, &none)) {
        return NULL;
    }
    native_swap((PyObject **)&inside.tensor, Py_NewRef(tensor));
    native_swap((PyObject **)&inside.parameter, Py_NewRef(parameter));
    inside.grad = (get_tensor)(uintptr_t)grad;
    inside.none = (void *)(uintptr_t)none;
    inside.place = place > 0 ? (size_t)place : 0;
    return Py_NewRef(Py_None);
}

PyObject *native_looks(PyObject *module, PyObject *tensor)
{
    void *handle;
    (void)module;
    if (get_handle(tensor, &handle) < 0) {
        return NULL;
    }
    return Py_BuildValue("NN", PyLong_FromVoidPtr(handle),
                         PyBool_FromLong(native_has_no_gradient(tensor)));
}

PyObject *native_reads(PyObject *module, PyObject *args)
{
    PyObject *tensor;
    unsigned long long address;
    long long reach, size;
    const void *data = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKLL:reads", &tensor, &address, &reach, &size)) {
        return NULL;
    }
    const gradb_tensor *known = (const gradb_tensor *)(uintptr_t)address;
    int fits = native_can_read(known->dtype) ? native_read(tensor, known, reach, size, &data) : 0;
    return fits < 0 ? NULL
           : fits   ? PyLong_FromVoidPtr((void *)(uintptr_t)data)
                    : Py_NewRef(Py_None);
}
