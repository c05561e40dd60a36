// SPDX-License-Identifier: MIT
#include "names.h"

struct native_names native_names;

static const struct {
    PyObject **place;
    const char *text;
} name_texts[] = {
    {&native_names.accumulate_grad, "AccumulateGrad"},
    {&native_names.accumulates, "accumulate_grad"},
    {&native_names.after, "after"},
    {&native_names.backward, "backward"},
    {&native_names.backward_ran, "backward_ran"},
    {&native_names.base, "_base"},
    {&native_names.batch, "batch"},
    {&native_names.before, "before"},
    {&native_names.cdata, "_cdata"},
    {&native_names.call, "__call__"},
    {&native_names.co_name, "co_name"},
    {&native_names.code, "_code"},
    {&native_names.closure, "closure"},
    {&native_names.dataclass_fields, "__dataclass_fields__"},
    {&native_names.compiled_call, "_compiled_call_impl"},
    {&native_names.data_ptr, "data_ptr"},
    {&native_names.dim, "dim"},
    {&native_names.dtype, "dtype"},
    {&native_names.end_training, "end_training"},
    {&native_names.ended, "ended"},
    {&native_names.enter, "__enter__"},
    {&native_names.epoch, "epoch"},
    {&native_names.evaluates, "evaluates"},
    {&native_names.exit, "__exit__"},
    {&native_names.f_back, "f_back"},
    {&native_names.f_code, "f_code"},
    {&native_names.f_lasti, "f_lasti"},
    {&native_names.fault, "fault"},
    {&native_names.first, "first"},
    {&native_names.forward_missed, "forward_missed"},
    {&native_names.give_late, "give_late"},
    {&native_names.grad, "grad"},
    {&native_names.grad_fn, "grad_fn"},
    {&native_names.hold, "_hold"},
    {&native_names.inplace, "inplace"},
    {&native_names.intercept, "intercept"},
    {&native_names.is_complex, "is_complex"},
    {&native_names.is_cpu, "is_cpu"},
    {&native_names.is_floating_point, "is_floating_point"},
    {&native_names.is_neg, "is_neg"},
    {&native_names.item, "item"},
    {&native_names.joins, "joins"},
    {&native_names.key, "gradb"},
    {&native_names.local, "local"},
    {&native_names.look, "_look"},
    {&native_names.look_at, "look_at"},
    {&native_names.loss, "loss"},
    {&native_names.lr, "lr"},
    {&native_names.metadata, "metadata"},
    {&native_names.micro_batch, "micro_batch"},
    {&native_names.modules, "modules"},
    {&native_names.nbytes, "nbytes"},
    {&native_names.next_functions, "next_functions"},
    {&native_names.operator_raised, "operator_raised"},
    {&native_names.operator_ran, "operator_ran"},
    {&native_names.operators, "operators"},
    {&native_names.optimizer_begins, "optimizer_begins"},
    {&native_names.optimizers, "optimizers"},
    {&native_names.out, "out"},
    {&native_names.param_groups, "param_groups"},
    {&native_names.path, "path"},
    {&native_names.put_off, "put_off"},
    {&native_names.raised, "raised"},
    {&native_names.ran, "ran"},
    {&native_names.ran_as, "ran_as"},
    {&native_names.reads, "reads"},
    {&native_names.register_hook, "register_hook"},
    {&native_names.requires_grad, "requires_grad"},
    {&native_names.run, "run"},
    {&native_names.save, "save"},
    {&native_names.shape, "shape"},
    {&native_names.site, "site"},
    {&native_names.step, "_step"},
    {&native_names.step_began, "step_began"},
    {&native_names.stepped, "stepped"},
    {&native_names.storage_offset, "storage_offset"},
    {&native_names.stride, "stride"},
    {&native_names.take_back, "take_back"},
    {&native_names.tell, "_tell"},
    {&native_names.training, "training"},
    {&native_names.variable, "variable"},
    {&native_names.version, "_version"},
};

int native_intern_names(void)
{
    for (size_t i = 0; i < sizeof(name_texts) / sizeof(*name_texts); i++) {
        if (!*name_texts[i].place &&
            !(*name_texts[i].place = PyUnicode_InternFromString(name_texts[i].text))) {
            return -1;
        }
    }
    return 0;
}
