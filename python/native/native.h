// SPDX-License-Identifier: MIT
/*
 * gradb._native: what the PyTorch agent does at every operator, in C.
 *
 * Only the ways that nearly all operators and backward nodes take, of nodes that are known by now;
 * whatever is unusual goes to the Python code in gradb.torch, which can do all of it and does all
 * of it where this module is not there. So there is no state here that Python has not: the classes
 * of gradb.torch whose attributes are needed at every operator have a base here (records.c), in
 * which these lie.
 *
 * Built for the stable ABI of CPython 3.10 and later: one binary serves all of them. All functions
 * want the interpreter's lock. Unless said otherwise they return new references, NULL or -1 with an
 * exception set.
 */
#ifndef GRADB_PYTHON_NATIVE_H
#define GRADB_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>

#include "agent/gradb.h"

/* Changes with what Python passes here or finds here: the two halves must be of the same tree. */
#define NATIVE_INTERFACE 11

/* ---- names.c: names of attributes, methods and keys, interned once --------------------------- */

struct native_names {
    PyObject *accumulate_grad, *accumulates, *after, *backward, *backward_ran, *base, *batch,
        *before, *call, *cdata, *closure, *dataclass_fields, *data_ptr, *dim, *dtype, *end_training,
        *ended, *enter, *epoch, *evaluates, *exit, *fault, *first, *forward_missed, *grad, *grad_fn,
        *hold, *inplace, *intercept, *is_complex, *is_cpu, *is_floating_point, *is_neg, *item,
        *joins, *key, *local, *look, *look_at, *loss, *lr, *metadata, *micro_batch, *modules,
        *nbytes, *next_functions, *operator_raised, *operator_ran, *operators, *optimizer_begins,
        *optimizers, *out, *param_groups, *path, *raised, *ran, *ran_as, *reads, *register_hook,
        *run, *save, *shape, *site, *step_began, *stepped, *storage_offset, *stride, *take_back,
        *tell, *training, *variable, *version;
};
extern struct native_names native_names;
int native_intern_names(void);

/* ---- records.c ------------------------------------------------------------------------------- */

/* Classes of gradb.torch, and what of theirs lies here: see their docstrings. */
enum native_kind {
    NATIVE_AGENT,
    NATIVE_STEPS,
    NATIVE_EVENTS,
    NATIVE_LOADER,
    NATIVE_BACKWARD,
    NATIVE_SCALER,
    NATIVE_LIVE,
    NATIVE_TELLING,
    NATIVE_GRAPH,
    NATIVE_FAMILY,
    NATIVE_NODE,
    NATIVE_PLACES,
    NATIVE_OPERATOR,
    NATIVE_MARK,
    NATIVE_REGIONS,
    NATIVE_KINDS
};
enum native_agent_field {
    AGENT_LOOKING,
    AGENT_DEAD,
    AGENT_IN_BACKWARD,
    AGENT_SHARDS,
    AGENT_DETAIL,
    AGENT_OVERFLOW,
    AGENT_STEPS,
    AGENT_LIVE,
    AGENT_TIMING,
    AGENT_SCALER,
    AGENT_TELLING,
    AGENT_WANTED,
    AGENT_EVENTS,
    AGENT_CLEARING,
    AGENT_BACKWARD
};
enum native_steps_field {
    STEPS_STEP,
    STEPS_FORWARD,
    STEPS_RUNNING,
    STEPS_BEGUN,
    STEPS_PHASE,
    STEPS_MAIN,
    STEPS_OTHERS,
    STEPS_CLOSURES,
    STEPS_IN_CLOSURE,
    STEPS_PASSES,
    STEPS_DUE,
    STEPS_STEPPED,
    STEPS_BY_HAND,
    STEPS_HAS_OPTIMIZER
};
enum native_events_field {
    EVENTS_LOSSES,
    EVENTS_PASSES,
    EVENTS_SEVERAL,
    EVENTS_NUMBERS,
    EVENTS_TOLD,
    EVENTS_LOADER
};
enum native_loader_field { LOADER_LAST, LOADER_USED };
enum native_backward_field { BACKWARD_DEPTH, BACKWARD_TOOK };
enum native_scaler_field { SCALER_STEPPING, SCALER_SCALING, SCALER_KEPT };
enum native_live_field {
    LIVE_STEP,
    LIVE_NOW,
    LIVE_SCALES,
    LIVE_SCALE,
    LIVE_KEPT,
    LIVE_LEAVES,
    LIVE_LASTING
};
enum native_telling_field { TELLING_GRAPH, TELLING_PENDING };
enum native_graph_field {
    GRAPH_STEP,
    GRAPH_RAN,
    GRAPH_GROWN,
    GRAPH_LEAKED,
    GRAPH_NOVEL,
    GRAPH_FAMILIES,
    GRAPH_ORIGINS,
    GRAPH_LASTING,
    GRAPH_WRITERS,
    GRAPH_BEFORE
};
enum native_family_field { FAMILY_NODES, FAMILY_STEP, FAMILY_COUNT };
enum native_node_field {
    NODE_ID,
    NODE_NAME,
    NODE_STEP,
    NODE_ASIDE,
    NODE_LEARNT,
    NODE_MARK,
    NODE_ASKED,
    NODE_WANTS,
    NODE_PLACES,
    NODE_BACKWARD,
    NODE_GRADIENT,
    NODE_EDGES
};
enum native_places_field { PLACES_COUNT, PLACES_ADDRESS, PLACES_FORMS };
enum native_operator_field { OPERATOR_NAME, OPERATOR_USUAL, OPERATOR_IN_PLACE, OPERATOR_COUNTS };
enum native_mark_field { MARK_NODE, MARK_OPERATOR };
enum native_regions_field { REGIONS_COMPILED };

#define NATIVE_FIELDS 12 /* of most; of those of which there is one, up to */
#define NATIVE_MOST   16
struct native_record {
    PyObject_HEAD PyObject *at[]; /* NULL is None */
};
extern PyTypeObject *native_kinds[NATIVE_KINDS];
int native_add_records(PyObject *module);
bool native_is_a(PyObject *object, enum native_kind kind);
/* A field of a record, by one of the numbers above: borrowed, and never fails. */
static inline PyObject *native_get(PyObject *record, int field)
{
    PyObject *value = ((struct native_record *)record)->at[field];
    return value ? value : Py_None;
}
/* The same of a field that holds True, or what stands for false. */
static inline bool native_is_true(PyObject *record, int field)
{
    return ((struct native_record *)record)->at[field] == Py_True;
}
void native_set(PyObject *record, int field, PyObject *value);
/* The same of a reference that it takes over; NULL: -1, and nothing is set. */
int native_put(PyObject *record, int field, PyObject *value);
/* 1, 0, or -1: its truth. */
int native_is(PyObject *record, int field);
/* Of a field that holds a small number. native_put_int: 0 or -1. */
long native_int(PyObject *record, int field);
int native_put_int(PyObject *record, int field, long value);
/* The same of 0, which mostly is one object: the shortest way. */
extern PyObject *native_zero;
static inline bool native_is_zero(PyObject *record, int field)
{
    return native_get(record, field) == native_zero || native_int(record, field) == 0;
}

/* ---- references.c: what the garbage collector asks of objects of our types ------------------- */

/* A type lists where in its objects references lie, and ends that with 0: what its Py_tp_traverse
 * and Py_tp_clear do. */
int native_visit(PyObject *object, const size_t *references, visitproc visit, void *arg);
int native_drop(PyObject *object, const size_t *references);

/* ---- clock.c --------------------------------------------------------------------------------- */

/* As timing.py has them. */
enum native_section {
    SECTION_GAP,
    SECTION_DATA,
    SECTION_FORWARD,
    SECTION_BACKWARD,
    SECTION_OPTIMIZER,
    SECTIONS
};

/* The base of timing.Timing. Seconds. */
struct native_clock {
    PyObject_HEAD double away, since, left; /* see timing.py */
    double spent[SECTIONS];
    bool known[SECTIONS];
    bool on, has_data;
    enum native_section section;
};
extern PyType_Spec native_clock_spec;
extern PyTypeObject *native_clock_type;

/* From now on, `since` then, it is that section. */
void native_turn(struct native_clock *clock, enum native_section section);
/* The times of the step that is over; and the next one's begin. */
gradb_times native_times(const struct native_clock *clock);
void native_restart(struct native_clock *clock);

/* A call of libgradb that may stand for long: the interpreter is everybody's meanwhile, and the
 * time nobody's. */
struct native_absence {
    PyThreadState *state;
    double began;
};
struct native_absence native_leave(void);
void native_return(struct native_clock *clock, struct native_absence absence);

/* ---- numbers.c: what events.Events does for an idle step, further down ---------------------- */

struct native_number {
    bool is_there;
    double value;
};
#define NATIVE_MAX_GROUPS 16 /* of an optimizer, whose rates are told, as events.py has it */

/* ---- context.c ------------------------------------------------------------------------------- */

/* What the agent is made of, and libgradb's functions. One per agent; Python makes it when all of
 * the agent is there, and closes it before the handle is gone. */
struct native_context {
    PyObject_HEAD PyObject *agent, *telling, *graph, *steps, *live, *scaler, *events,
        *backward; /* records */
    struct native_clock *clock;
    struct native_clearing *clearing;
    PyObject *local;   /* of modules.Modules: path and site of this thread */
    PyObject *tensor;  /* torch.Tensor */
    PyObject *apart;   /* ops.apart */
    PyObject *storage; /* of a tensor: what has nbytes() */
    PyObject *tracing; /* torch._C._get_tracing_state */
    PyObject *step_type, *custom_type, *types, *type_of, *custom_mark; /* of backward.py */
    PyObject *has_gradients;                                           /* torch.is_grad_enabled */
    PyObject
        *stand_in;   /* calls an operator, so that its warnings have the program's line; or None */
    PyObject *modes; /* torch._C._is_torch_function_mode_enabled */
    PyObject *parameter;    /* torch.nn.Parameter */
    PyObject *undispatched; /* torch._C._DisableTorchDispatch */
    struct gradb *handle;   /* NULL: closed */
    void (*did)(struct gradb *, gradb_node);
    void (*did_with)(struct gradb *, gradb_node, const gradb_tensor *, size_t);
    /* NULL: an older libgradb */
    void (*did_with_same)(struct gradb *, gradb_node, const gradb_tensor *, size_t,
                          const gradb_same *);
    void (*step_begin)(struct gradb *, int64_t);
    void (*step_end)(struct gradb *);
    void (*enter)(struct gradb *, gradb_phase);
    void (*scalar)(struct gradb *, const char *, double);
    void (*timing)(struct gradb *, const gradb_times *);
    bool (*is_connected)(const struct gradb *);
    bool (*wants_stop)(struct gradb *);
    bool (*wants_checkpoint)(struct gradb *);
    /* NULL: an older libgradb */
    void (*on_armed)(struct gradb *, void (*)(void *), void *);
    bool (*try_enter)(struct gradb *, gradb_phase);
    bool (*try_step)(struct gradb *, int64_t);
    unsigned long thread; /* that trains */
    int idle_steps;       /* that may go by without Python: see idle.c */
    bool idle_connected;  /* there is a debugger in them */
    int wrapped;          /* calls of modules that run by way of an Entrance and Python's wrapper */
    bool inside;          /* of that module, and nobody has asked for the path since */
    /* The module that is called first in a step, weak, and what it is called; NULL: not known. */
    PyObject *outermost, *outermost_path, *evaluation_path;
    struct native_number loss; /* of the running step, which no Python knows of: see numbers.c */
    int rate_count;
    double rates[NATIVE_MAX_GROUPS];
    PyObject *recording; /* says whether a CUDA graph is being recorded; NULL: none can be */
};

extern PyType_Spec native_context_spec;
extern PyTypeObject *native_context_type;

/* A reference in place of the one that is there. */
void native_swap(PyObject **place, PyObject *value);
/* Calls a method, and drops what it returns. */
int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c);
/* What ends an object of a type of ours, whose references `clear` drops. */
void native_dealloc(PyObject *object, inquiry clear);
/* Begins a moment in which no function mode of the program's hears of what is asked of tensors.
 * native_leave_apart ends it and drops what this returns; an exception that is set stays so. */
PyObject *native_enter_apart(const struct native_context *context);
/* The same where a mode or a subclass of the program's would see what is asked of the tensor; None,
 * for native_leave_apart as well, where nobody would. */
PyObject *native_enter_apart_for(const struct native_context *context, PyObject *tensor);
int native_leave_apart(PyObject *apart);
/* Gives the exception that is set to agent.fault, which says it once and turns the agent off. -1:
 * it is none of ours but an interrupt, and stays set. */
int native_fault(struct native_context *context);
/* 1, 0, or -1: what the agent does now needs Python at every operator or node. */
int native_is_watched_closely(const struct native_context *context);

/* ---- telling.c ------------------------------------------------------------------------------- */

/* What Python keeps in tuples: of values.Places for an output, and of graph.Graph's origins. */
enum native_form {
    FORM_SHAPE,
    FORM_STRIDES,
    FORM_DTYPE,
    FORM_REACH, /* bytes from the first element to behind the last */
    FORM_SIZE,  /* bytes of an element */
    FORM_KIND,
    FORM_DENSE /* its elements lie side by side, in whatever order of the axes */
};
enum native_origin { ORIGIN_TENSOR, ORIGIN_VERSION, ORIGIN_NODE, ORIGIN_SLOT };

/* 1, 0, or -1: the arguments of an operator come from the nodes that its node's edges name. 0 also
 * where only Python can tell. (inputs.c) */
int native_reads_same(struct native_context *context, PyObject *node, PyObject *args,
                      PyObject *keywords);
/* The next node of a family that graph.Graph has under `key`, counted, when all is known of it:
 * learnt where that is asked for, else it has a number. NULL without an exception: it is not, and
 * nothing was counted. */
PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt);
/* The tensor is the output of that slot from now on. Its origin. */
PyObject *native_produced(struct native_context *context, PyObject *tensor, PyObject *node,
                          long slot);
/* The same of one that the node has written in place, and with it all views of its memory. */
PyObject *native_wrote(struct native_context *context, PyObject *tensor, PyObject *node, long slot);
/* How often a tensor was written in place, new; 0 for those that do not count (inference mode). */
PyObject *native_version(PyObject *tensor);
/* 1, 0, or -1: the answer of a method without arguments. */
int native_asks(PyObject *tensor, PyObject *method);
/* Leaves the node's mark on what computed the tensor, when it has a gradient. */
int native_mark(PyObject *tensor, PyObject *node);
/* 1, 0, or -1: the tensor is as values.Places has known it, by its form and in *ret, but for its
 * address, which *ret gets. */
int native_place(struct native_context *context, PyObject *tensor, PyObject *form,
                 gradb_tensor *ret);
/* `bytes` of memory have all elements of `size` bytes from the one at `offset`, which reach so far.
 */
bool native_is_inside(long long offset, long long bytes, long long reach, long long size);
/* A node has run: tensors and records (origins) are tuples with one entry per slot. `before`: the
 * tensors that it was computed from, a tuple. */
int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before);

/* ran(context, node, tensors, records): see Telling._ran. */
PyObject *native_tell_ran(PyObject *module, PyObject *args);

/* ---- same.c ---------------------------------------------------------------------------------- */

#define NATIVE_MAX_SAME 16 /* outputs, and tensors before, that are compared */

/* The structs of a values.Places; NULL with an exception. */
gradb_tensor *native_structs(PyObject *places);
/* For gradb_did_with_same: which of a node's outputs are what was told of one of the tensors
 * `before` in this step. 1 when any is, 0 when none, -1. */
int native_same(struct native_context *context, PyObject *places, const gradb_tensor *structs,
                Py_ssize_t count, PyObject *before, gradb_same ret[NATIVE_MAX_SAME]);

/* ---- numbers.c: what events.Events does for an idle step ------------------------------------- */

/* The loss of a backward pass. 1: it is in `ret`, where there is one to be told; 0: only Python can
 * tell; -1. */
int native_loss_of(struct native_context *context, PyObject *tensors, PyObject *gradients,
                   struct native_number *ret);
/* A pass into the parameters begins; loss: what it is called on. */
int native_note_pass(struct native_context *context, struct native_number loss);
/* The learning rates that the main optimizer's step uses. */
int native_note_rates(struct native_context *context, PyObject *optimizer);
/* The main optimizer has stepped. */
int native_note_stepped(struct native_context *context);
/* A method of a context: what waits goes to where Python looks for it. */
PyObject *native_give_numbers(PyObject *context, PyObject *none);
/* The step is over: its numbers go to the debugger when `told`. */
int native_tell_numbers(struct native_context *context, bool told);

/* ---- clearing.c: what training.Clearings does for an idle step ------------------------------- */

/* The base of training.Clearing: see there. A context has the first. */
struct native_clearing {
    PyObject_HEAD bool cleared, added, looked, asks, believed;
    unsigned gone; /* steps, one after the other, before whose first pass there was no gradient */
    long long since;
    PyObject *next;      /* of references NULL is None */
    PyObject *parameter; /* weak, as is the optimizer */
    unsigned long long seen;
    long long version;
    PyObject *optimizer;
    unsigned long long left; /* the gradient as a pass left it; 0: none has left any */
    long long left_version;
};
extern PyType_Spec native_clearing_spec;
extern PyTypeObject *native_clearing_type;

/* An outermost backward pass into the parameters begins, or is over; an optimizer has stepped. */
int native_clearing_begins(struct native_context *context);
int native_clearing_ends(struct native_context *context);
int native_clearing_stepped(struct native_context *context, PyObject *optimizer);

/* ---- idle.c: methods of a context, and what they do ------------------------------------------ */

/* 1: done; 0: only Python can; -1: an interrupt. A forward pass begins with that module; the
 * program's optimizer is about to step, with those arguments of the hook; it has stepped. */
int native_begins_with(struct native_context *context, PyObject *module);
/* What native_begins_with has begun with is over. */
void native_leaves(struct native_context *context);
/* The module that runs is inside of that one: Python, which is about to ask, is told so. 0 or -1.
 */
int native_tell_path(struct native_context *context);
int native_step_begins(struct native_context *context, PyObject *optimizer, PyObject *args,
                       PyObject *keywords);
int native_step_ended(struct native_context *context, PyObject *optimizer);

/* The thread is the one that trains. */
bool native_is_ours(const struct native_context *context);

PyObject *native_idle(PyObject *context, PyObject *args);
PyObject *native_is_nested(PyObject *context, PyObject *none);
PyObject *native_outermost(PyObject *context, PyObject *args);
PyObject *native_is_outermost(PyObject *context, PyObject *module);
PyObject *native_optimizer_begins(PyObject *context, PyObject *args);
PyObject *native_optimizer_ended(PyObject *context, PyObject *optimizer);
/* 1, 0, or -1: the outermost backward pass of an idle step has begun, or is over. */
int native_pass_begins(struct native_context *context, PyObject *tensors, PyObject *gradients,
                       PyObject *keywords);
int native_pass_ends(struct native_context *context);

/* ---- hand_over.c ----------------------------------------------------------------------------- */

extern PyType_Spec native_entrance_spec;
/* Methods of a context: see there. */
PyObject *native_hand_over(PyObject *context, PyObject *on);
PyObject *native_before_step(PyObject *context, PyObject *const *args, Py_ssize_t count);
PyObject *native_after_step(PyObject *context, PyObject *const *args, Py_ssize_t count);
/* frame_setter(regions, original, wrapper): in place of the wrapper; see regions.Regions. */
PyObject *native_frame_setter(PyObject *module, PyObject *args);
/* Python's wrappers stand aside. */
bool native_is_handed_over(const struct native_context *context);
/* The context is about to go. */
void native_forget_handed(const struct native_context *context);

/* ---- engine.c: the base of backward._Engine -------------------------------------------------- */

extern PyType_Spec native_engine_spec;

/* ---- tensors.c ------------------------------------------------------------------------------- */

/* libtorch has the functions that native_read needs for tensors of that type. */
bool native_can_read(gradb_dtype dtype);
/* 1, 0, or -1: the tensor, which is not lazily negated, is as `known` says but for its address,
 * which *ret gets; lies in the host's memory, and all of it, which reaches so many bytes, is there.
 */
int native_read(PyObject *tensor, const gradb_tensor *known, long long reach, long long size,
                const void **ret);
/* 1, 0, or -1: the value of a tensor without axes, of float32 or float64, which has its memory in
 * the host for itself: so it is none that is lazily negated, as a part of a complex one may be. */
int native_read_number(PyObject *tensor, double *ret);
/* 1, 0, or -1: what is computed now has gradients. */
int native_has_gradients(const struct native_context *context);
/* The parameter is known to have no gradient. */
bool native_has_no_gradient(PyObject *parameter);
/* excepthook(function): see excepthook.c. */
PyObject *native_excepthook(PyObject *module, PyObject *callable);

/* read_by(addresses, strided, cpu, dtypes), reads(tensor, address of a struct, reach, size),
 * look_into(torch.Tensor, Parameter, place, function, address), looks(tensor): see reading.py. */
PyObject *native_read_by(PyObject *module, PyObject *args);
PyObject *native_reads(PyObject *module, PyObject *args);
PyObject *native_look_into(PyObject *module, PyObject *args);
PyObject *native_looks(PyObject *module, PyObject *tensor);
/* modules.in_place */
PyObject *native_in_place(PyObject *module, PyObject *args);

/* ---- operators.c, passes.c, source.c --------------------------------------------------------- */

extern PyType_Spec native_operators_spec, native_step_spec, native_source_spec;
extern PyTypeObject *native_step_type;
/* registrar(others, type of dict): what is to be torch.autograd.Function._register_hook. */
PyObject *native_registrar(PyObject *module, PyObject *args);
/* hook_all(context, roots, steps, handles, names): see backward.Backward. */
PyObject *native_hook_all(PyObject *module, PyObject *args);

#endif
