// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensors in PyTorch's pickles: the functions that would create them, and their arguments. A call
 * may wrap another (a parameter around its tensor), so the work is passed on a few times.
 */
#include <stdio.h>
#include <string.h>

#include "dump/torch/torch_impl.h"

#define MAX_WRAPS 8
#define MAX_FLAGS 64 /* flags that are searched: many tensors may share one dict of them */

struct job {
    struct torch_file *file;
    struct torch_tensor *ret;
    const struct gd_pickle_global *callee;
    const struct gd_pickle_value *args;
    bool again; /* callee and args are now those of an inner call */
};

static void refuse_tensor(struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void refuse_tensor(struct job *job, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(job->ret->problem, sizeof(job->ret->problem), format, args);
    va_end(args);
}

static const struct gd_pickle_value *get_argument(const struct job *job, size_t index)
{
    return gd_pickle_item(job->args, index);
}

static bool is_true(const struct gd_pickle_value *value)
{
    return value && value->kind == GD_PICKLE_BOOL && value->truth;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

int torch_get_dims(const struct gd_pickle_value *value, int64_t dim[GD_MAX_RANK])
{
    if (gd_pickle_is_call(value, "torch", "Size")) {
        value = gd_pickle_item(value->object->args, 0);
    }
    if (!value || (value->kind != GD_PICKLE_TUPLE && value->kind != GD_PICKLE_LIST) ||
        value->count > GD_MAX_RANK) {
        return -1;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        if (!gd_pickle_get_int(value->item[i], &dim[i])) {
            return -1;
        }
    }
    return (int)value->count;
}

static bool set_shape(struct job *job, const struct gd_pickle_value *size,
                      const struct gd_pickle_value *stride)
{
    struct gd_source_desc *view = &job->ret->view;

    view->shape.rank = torch_get_dims(size, view->shape.dim);
    if (view->shape.rank < 0) {
        view->shape.rank = 0;
        refuse_tensor(job, "its shape is invalid, or has more than %d dimensions", GD_MAX_RANK);
        return false;
    }
    for (int i = 0; i < view->shape.rank; i++) {
        if (view->shape.dim[i] < 0) {
            refuse_tensor(job, "its shape has the negative dimension %lld",
                          (long long)view->shape.dim[i]);
            return false;
        }
    }
    if (torch_get_dims(stride, view->stride) != view->shape.rank) {
        refuse_tensor(job, "its strides do not match its shape");
        return false;
    }
    view->has_stride = true;
    return true;
}

/* The text of a shape and type, for tensors without values. */
static const char *shape_text(const struct gd_pickle_value *size, char *out, size_t bytes)
{
    struct gd_shape shape = {.rank = 0};

    shape.rank = torch_get_dims(size, shape.dim);
    if (shape.rank < 0) {
        return "an unknown shape";
    }
    return gd_shape_text(&shape, out, bytes);
}

/* ---- dense tensors --------------------------------------------------------------------------- */

static bool set_storage(struct job *job, const struct gd_pickle_value *value,
                        const struct gd_pickle_value *offset)
{
    struct gd_source_desc *view = &job->ret->view;
    struct torch_use use;
    int64_t first;

    if (!torch_use_storage(job->file, value, &use, job->ret->problem)) {
        return false;
    }
    if (!gd_pickle_get_int(offset, &first) || first < 0 ||
        __builtin_add_overflow(first, use.first, &view->offset)) {
        refuse_tensor(job, "its offset in the storage is invalid");
        return false;
    }
    view->stored = use.stored;
    view->swap = job->file->swap;
    view->bytes = gd_bytes_ref(use.storage->bytes);
    job->ret->storage = use.storage;
    return true;
}

/* Flags that torch resolves when values are read: {'conj': True, 'neg': True}. */
static void set_flags(struct job *job, const struct gd_pickle_value *flags)
{
    if (flags && flags->kind == GD_PICKLE_DICT && flags->count <= MAX_FLAGS) {
        job->ret->view.conjugate = is_true(gd_pickle_get(flags, "conj"));
        job->ret->view.negate = is_true(gd_pickle_get(flags, "neg"));
    }
}

/* (storage, offset, size, stride[, requires_grad, hooks[, flags]]) */
static void rebuild_dense(struct job *job)
{
    if (set_shape(job, get_argument(job, 2), get_argument(job, 3)) &&
        set_storage(job, get_argument(job, 0), get_argument(job, 1))) {
        set_flags(job, get_argument(job, 6));
    }
    if (is_true(get_argument(job, 4))) {
        job->ret->trainable = GD_TRAINABLE_YES;
    }
}

/* (storage, offset, size, stride, requires_grad, hooks, dtype[, flags]) */
static void rebuild_typed(struct job *job)
{
    const struct gd_pickle_value *dtype = get_argument(job, 6);
    struct gd_source_desc *view = &job->ret->view;

    if (is_true(get_argument(job, 4))) {
        job->ret->trainable = GD_TRAINABLE_YES;
    }
    if (!set_shape(job, get_argument(job, 2), get_argument(job, 3)) ||
        !set_storage(job, get_argument(job, 0), get_argument(job, 1))) {
        return;
    }
    view->stored = torch_dtype(dtype);
    if (!view->stored) {
        refuse_tensor(job, "unknown element type %.100s",
                      dtype && dtype->kind == GD_PICKLE_GLOBAL ? dtype->global->name : "");
    } else if (gd_pickle_is_global(dtype, "torch", "float4_e2m1fn_x2")) {
        snprintf(job->ret->note, sizeof(job->ret->note),
                 "float4_e2m1fn_x2, two values per byte, is shown as bytes");
    }
    set_flags(job, get_argument(job, 7));
}

static void add_part(struct job *job, const char *name, struct gd_pickle_value *value)
{
    if (value) {
        job->ret->part[job->ret->parts++] = (struct torch_part){.name = name, .value = value};
    }
}

/* (storage, offset, size, stride, (scheme, ...), requires_grad, hooks): shows the integers, with a
 * note on what they mean. */
static void rebuild_quantised(struct job *job)
{
    const struct gd_pickle_value *how = get_argument(job, 4), *scale = gd_pickle_item(how, 1);
    int64_t zero = 0, axis = 0;

    if (!set_shape(job, get_argument(job, 2), get_argument(job, 3)) ||
        !set_storage(job, get_argument(job, 0), get_argument(job, 1))) {
        return;
    }
    if (gd_pickle_is_global(gd_pickle_item(how, 0), "torch", "per_tensor_affine") && scale &&
        scale->kind == GD_PICKLE_FLOAT && gd_pickle_get_int(gd_pickle_item(how, 2), &zero)) {
        snprintf(job->ret->note, sizeof(job->ret->note),
                 "quantised: the values are (q - %lld) * %.17g", (long long)zero, scale->real);
        return;
    }
    if (!scale || !gd_pickle_get_int(gd_pickle_item(how, 3), &axis)) {
        refuse_tensor(job, "unknown kind of quantisation");
        return;
    }
    snprintf(job->ret->note, sizeof(job->ret->note),
             "quantised along axis %lld: the values are (q - zero_points) * scales",
             (long long)axis);
    add_part(job, "scales", gd_pickle_item(how, 1));
    add_part(job, "zero_points", gd_pickle_item(how, 2));
}

/* ---- tensors of several parts, tensors without values ---------------------------------------- */

/* 'torch.sparse_coo' of _get_layout('torch.sparse_coo'), or torch.sparse_coo by name. */
static bool is_layout(const struct gd_pickle_value *value, const char *name)
{
    char full[64];

    snprintf(full, sizeof(full), "torch.%s", name);
    return gd_pickle_is_global(value, "torch", name) ||
           (gd_pickle_is_call(value, "torch.serialization", "_get_layout") &&
            gd_pickle_is_text(gd_pickle_item(value->object->args, 0), full));
}

/* (layout, (indices, values, size, ...)) or (layout, (compressed, plain, values, size)) */
static void rebuild_sparse(struct job *job)
{
    static const struct {
        const char *layout, *first, *second;
    } kinds[] = {
        {"sparse_coo", "indices", NULL},
        {"sparse_csr", "crow_indices", "col_indices"},
        {"sparse_bsr", "crow_indices", "col_indices"},
        {"sparse_csc", "ccol_indices", "row_indices"},
        {"sparse_bsc", "ccol_indices", "row_indices"},
    };
    const struct gd_pickle_value *data = get_argument(job, 1);
    char shape[128];
    size_t next = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (is_layout(get_argument(job, 0), kinds[i].layout)) {
            add_part(job, kinds[i].first, gd_pickle_item(data, next++));
            if (kinds[i].second) {
                add_part(job, kinds[i].second, gd_pickle_item(data, next++));
            }
            add_part(job, "values", gd_pickle_item(data, next++));
            snprintf(job->ret->text, sizeof(job->ret->text), "%s tensor of shape %s",
                     kinds[i].layout, shape_text(gd_pickle_item(data, next), shape, sizeof(shape)));
            return;
        }
    }
    refuse_tensor(job, "unknown sparse layout");
}

/* (buffer, sizes, strides, offsets) */
static void rebuild_nested(struct job *job)
{
    static const char *const names[] = {"buffer", "sizes", "strides", "offsets"};

    for (size_t i = 0; i < 4; i++) {
        add_part(job, names[i], gd_pickle_item(job->args, i));
    }
    snprintf(job->ret->text, sizeof(job->ret->text), "nested tensor");
}

/* (dtype, size, stride, requires_grad) */
static void rebuild_meta(struct job *job)
{
    const struct gd_pickle_value *dtype = get_argument(job, 0);
    char shape[128];

    refuse_tensor(job, "it was on the meta device: %.40s %s without values",
                  dtype && dtype->kind == GD_PICKLE_GLOBAL ? dtype->global->name : "",
                  shape_text(get_argument(job, 1), shape, sizeof(shape)));
}

/* (class, dtype, size, ...) */
static void rebuild_wrapper(struct job *job)
{
    const struct gd_pickle_value *class = get_argument(job, 0), *dtype = get_argument(job, 1);
    char shape[128];

    refuse_tensor(job, "a %.100s is only a wrapper: %.40s %s without values of its own",
                  class && class->kind == GD_PICKLE_GLOBAL ? class->global->name : "tensor",
                  dtype && dtype->kind == GD_PICKLE_GLOBAL ? dtype->global->name : "",
                  shape_text(get_argument(job, 2), shape, sizeof(shape)));
}

/* ---- wrapping calls -------------------------------------------------------------------------- */

static void go_on(struct job *job, const struct gd_pickle_value *callee,
                  const struct gd_pickle_value *args)
{
    if (!callee || callee->kind != GD_PICKLE_GLOBAL || !args || args->kind != GD_PICKLE_TUPLE) {
        refuse_tensor(job, "what it is made of is not a tensor");
        return;
    }
    job->callee = callee->global;
    job->args = args;
    job->again = true;
}

/* The array of a mindspore.Tensor, an object with state {'value': array}, or of a mindspore
 * Parameter around one; NULL: neither. */
static const struct gd_pickle_value *mindspore_array(const struct gd_pickle_value *value)
{
    const struct gd_pickle_value *array;

    if (gd_pickle_is_call(value, "mindspore.common.parameter", "Parameter")) {
        value = gd_pickle_item(value->object->args, 0);
    }
    if (!gd_pickle_is_call(value, "mindspore.common.tensor", "Tensor")) {
        return NULL;
    }
    array = gd_pickle_get(value->object->state, "value");
    return array && torch_is_array(array) ? array : NULL;
}

static void go_on_with(struct job *job, const struct gd_pickle_value *tensor)
{
    if (tensor && tensor->kind == GD_PICKLE_PERSISTENT && job->file->tensor_of) {
        if (!job->file->tensor_of(job->file, tensor, &job->ret->view)) {
            refuse_tensor(job, "its id does not belong to a tensor of the file");
        }
        return;
    }
    if (!tensor || tensor->kind != GD_PICKLE_OBJECT) {
        refuse_tensor(job, "what it is made of is not a tensor");
        return;
    }
    if (mindspore_array(tensor)) {
        torch_describe_array(mindspore_array(tensor), job->ret);
        return;
    }
    go_on(job, tensor->object->callee, tensor->object->args);
}

/* (tensor, requires_grad, hooks[, state]) */
static void rebuild_parameter(struct job *job)
{
    job->ret->is_parameter = true;
    job->ret->trainable = is_true(get_argument(job, 1)) ? GD_TRAINABLE_YES : GD_TRAINABLE_NO;
    job->ret->state = gd_pickle_item(job->args, 3);
    go_on_with(job, get_argument(job, 0));
}

/* (function, class, arguments, state) */
static void rebuild_subclass(struct job *job)
{
    job->ret->state = gd_pickle_item(job->args, 3);
    go_on(job, get_argument(job, 0), get_argument(job, 2));
}

/* (tensor, dtype, device, requires_grad): saved from a device through the host. */
static void rebuild_from_host(struct job *job)
{
    go_on_with(job, get_argument(job, 0));
}

static void rebuild_from_numpy(struct job *job)
{
    const struct gd_pickle_value *array = get_argument(job, 0);

    if (!torch_is_array(array)) {
        refuse_tensor(job, "the array it is made of is not an array");
        return;
    }
    torch_describe_array(array, job->ret);
}

/* ---- MindSpore's ----------------------------------------------------------------------------- */

/* (array, dtype): types that numpy lacks were widened. */
static void rebuild_adapter_tensor(struct job *job)
{
    const struct gd_pickle_value *array = get_argument(job, 0), *dtype = get_argument(job, 1);

    rebuild_from_numpy(job);
    if (array && gd_pickle_is_call(dtype, "mindspore._c_expression.typing", "BFloat") &&
        job->ret->view.stored == GD_STORED_FLOAT32) {
        snprintf(job->ret->note, sizeof(job->ret->note),
                 "bfloat16 that was widened to float32 when it was saved");
    }
}

/* (tensor, requires_grad, name, layerwise_parallel[, state]) */
static void rebuild_adapter_parameter(struct job *job)
{
    rebuild_parameter(job);
    job->ret->state = gd_pickle_item(job->args, 4);
}

static const struct rebuild {
    const char *name;
    void (*run)(struct job *job);
} rebuilds[] = {
    {"_rebuild_tensor_v2", rebuild_dense},
    {"_rebuild_parameter", rebuild_parameter},
    {"_rebuild_tensor", rebuild_dense},
    {"_rebuild_tensor_v3", rebuild_typed},
    {"_rebuild_parameter_with_state", rebuild_parameter},
    {"_rebuild_qtensor", rebuild_quantised},
    {"_rebuild_sparse_tensor", rebuild_sparse},
    {"_rebuild_sparse_csr_tensor", rebuild_sparse},
    {"_rebuild_nested_tensor", rebuild_nested},
    {"_rebuild_meta_tensor_no_storage", rebuild_meta},
    {"_rebuild_wrapper_subclass", rebuild_wrapper},
    {"_rebuild_device_tensor_from_cpu_tensor", rebuild_from_host},
    {"_rebuild_device_tensor_from_numpy", rebuild_from_numpy},
    {"_rebuild_xla_tensor", rebuild_from_numpy},
    {"_rebuild_from_type", rebuild_subclass},
    {"_rebuild_from_type_v2", rebuild_subclass},
    {"_rebuild_mindtorch_tensor", rebuild_adapter_tensor},
    {"_rebuild_mindtorch_parameter", rebuild_adapter_parameter},
    {"_rebuild_mindtorch_parameter_with_state", rebuild_adapter_parameter},
};

/* PyTorch's own, and those of its interface on MindSpore, "mindtorch.torch._utils". */
static bool is_rebuild_module(const char *module)
{
    static const char adapter[] = "mindtorch.";

    if (strncmp(module, adapter, sizeof(adapter) - 1) == 0) {
        module += sizeof(adapter) - 1;
    }
    return strcmp(module, "torch._utils") == 0 || strcmp(module, "torch._tensor") == 0 ||
           strcmp(module, "torch.tensor") == 0;
}

static const struct rebuild *find_rebuild(const struct gd_pickle_global *global)
{
    if (!is_rebuild_module(global->module)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(rebuilds) / sizeof(rebuilds[0]); i++) {
        if (strcmp(rebuilds[i].name, global->name) == 0) {
            return &rebuilds[i];
        }
    }
    return NULL;
}

bool torch_is_rebuild(const struct gd_pickle_global *global)
{
    return find_rebuild(global) != NULL;
}

bool torch_is_tensor(const struct torch_file *file, const struct gd_pickle_value *value)
{
    struct torch_storage_id id;

    if (value->kind == GD_PICKLE_PERSISTENT) {
        return file->tensor_of || torch_storage_id(value, &id);
    }
    return value->kind == GD_PICKLE_OBJECT && value->object->callee->kind == GD_PICKLE_GLOBAL &&
           (find_rebuild(value->object->callee->global) || mindspore_array(value));
}

/* A storage on its own is listed as one row of elements. */
static void describe_storage(struct job *job, const struct gd_pickle_value *value)
{
    struct gd_source_desc *view = &job->ret->view;
    struct torch_use use;

    if (torch_use_storage(job->file, value, &use, job->ret->problem)) {
        view->shape = (struct gd_shape){.rank = 1, .dim = {use.numel}};
        view->offset = use.first;
        /* elements smaller than a byte are counted in bytes */
        view->stored = gd_stored_bits(use.stored) < 8 ? GD_STORED_UINT8 : use.stored;
        view->swap = job->file->swap;
        view->bytes = gd_bytes_ref(use.storage->bytes);
        job->ret->storage = use.storage;
    }
}

void torch_describe(struct torch_file *file, struct gd_pickle_value *value,
                    struct torch_tensor *ret)
{
    struct job job = {.file = file, .ret = ret};

    memset(ret, 0, sizeof(*ret));
    if (value->kind == GD_PICKLE_PERSISTENT && !file->tensor_of) {
        describe_storage(&job, value);
        return;
    }
    go_on_with(&job, value);
    for (int wraps = 0; job.again; wraps++) {
        const struct rebuild *rebuild = find_rebuild(job.callee);

        job.again = false;
        if (!rebuild || wraps == MAX_WRAPS) {
            refuse_tensor(&job, "made by the unknown function %s.%s", job.callee->module,
                          job.callee->name);
            return;
        }
        rebuild->run(&job);
    }
}
