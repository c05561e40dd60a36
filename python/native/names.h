// SPDX-License-Identifier: MIT
/* The names of attributes, methods and keys, interned once. They live as long as the process. */
#ifndef GRADB_PYTHON_NAMES_H
#define GRADB_PYTHON_NAMES_H

#include "native.h"

struct native_names {
    PyObject *accumulate_grad, *accumulates, *after, *backward, *backward_ran, *base, *batch,
        *before, *call, *cdata, *closure, *co_name, *code, *compiled_call, *dataclass_fields,
        *data_ptr, *dim, *dtype, *end_training, *ended, *enter, *epoch, *evaluates, *exit, *f_back,
        *f_code, *f_lasti, *fault, *first, *forward_missed, *give_late, *grad, *grad_fn, *hold,
        *inplace, *intercept, *is_complex, *is_cpu, *is_floating_point, *is_neg, *item, *joins,
        *key, *local, *look, *look_at, *loss, *lr, *metadata, *micro_batch, *modules, *nbytes,
        *next_functions, *operator_raised, *operator_ran, *operators, *optimizer_begins,
        *optimizers, *out, *param_groups, *path, *put_off, *raised, *ran, *ran_as, *reads,
        *register_hook, *requires_grad, *run, *save, *shape, *site, *step, *step_began, *stepped,
        *storage_offset, *stride, *take_back, *tell, *training, *variable, *version;
};
extern struct native_names native_names;

/* Fills native_names. 0, or -1. */
int native_intern_names(void);

#endif
