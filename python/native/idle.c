// SPDX-License-Identifier: MIT
#include "idle.h"

#include "clearing.h"
#include "clock.h"
#include "names.h"
#include "numbers.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

/* ---- what idle means ------------------------------------------------------------------------- */

static bool is_watched(const struct native_context *context)
{
    return (context->handle && GRADB_IS_ARMED(context->handle)) ||
           native_is_true(context->agent, AGENT_WATCHING) ||
           native_get(context->agent, AGENT_OVERFLOW) != Py_None;
}

/* A CUDA graph is being recorded: nothing may be done now. */
static int is_recording(const struct native_context *context)
{
    return context->recording ? native_take_truth(PyObject_CallNoArgs(context->recording)) : 0;
}

int native_is_idle(const struct native_context *context)
{
    if (!context->handle || context->idle_steps <= 0 || is_watched(context) ||
        native_is_true(context->agent, AGENT_DEAD) ||
        !native_is_true(context->steps, STEPS_BEGUN) || native_is_true(context->steps, STEPS_DUE)) {
        return 0;
    }
    int recording = is_recording(context);
    return recording < 0 ? -1 : !recording;
}

/* No optimizer steps, no backward pass runs, and no GradScaler is at work. */
static bool is_outside(const struct native_context *context)
{
    return PyList_Size(native_get(context->steps, STEPS_RUNNING)) == 0 &&
           native_is_zero(context->steps, STEPS_PASSES) &&
           native_get(context->scaler, SCALER_STEPPING) == Py_None;
}

/* The steps of this optimizer are the steps of the training. */
static bool is_main_optimizer(const struct native_context *context, PyObject *optimizer)
{
    PyObject *main = native_get(context->steps, STEPS_MAIN);
    return main != Py_None && PyWeakref_GetObject(main) == optimizer;
}

PyObject *native_idle(PyObject *self, PyObject *args)
{
    struct native_context *context = (struct native_context *)self;
    PyObject *recording;
    int steps, connected;
    if (!PyArg_ParseTuple(args, "ipO:idle", &steps, &connected, &recording)) {
        return NULL;
    }
    context->idle_steps = steps;
    context->idle_connected = connected;
    context->idle_changes =
        context->handle ? __atomic_load_n(&context->handle->changes, __ATOMIC_RELAXED) : 0;
    native_swap(&context->recording, recording == Py_None ? NULL : Py_NewRef(recording));
    return Py_NewRef(Py_None);
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* The training enters another phase; it may stop here. */
static void enter_phase(struct native_context *context, gradb_phase phase)
{
    if (native_get_int(context->steps, STEPS_PHASE) == (long)phase) {
        return;
    }
    native_set_int(context->steps, STEPS_PHASE, (long)phase);
    if (!context->try_enter || !context->try_enter(context->handle, phase)) {
        struct native_wait absence = native_begin_wait();
        context->enter(context->handle, phase);
        native_end_wait(context->clock, absence);
    }
}

/* The status; or -1 for an interrupt; or `done` after a fault of ours, which was reported: the
 * agent is off now. */
static int settle_status(struct native_context *context, int status, int done)
{
    if (!PyErr_Occurred()) {
        return status;
    }
    return native_report_fault(context) < 0 ? -1 : done;
}

/* The result of a method. */
static PyObject *answer_bool(int status)
{
    return status < 0 ? NULL : PyBool_FromLong(status);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* A forward pass is known to run, or what runs is not one. */
static int is_forward_settled(const struct native_context *context)
{
    if (native_is_true(context->steps, STEPS_FORWARD)) {
        return 1;
    }
    int gradients = native_has_gradients(context->has_gradients);
    return gradients < 0 ? -1 : !gradients;
}

/* This thread is inside a module. */
static int is_inside_module(const struct native_context *context)
{
    if (context->inside && native_is_ours(context)) {
        return 1;
    }
    return native_take_truth(PyObject_GetAttr(context->local, native_names.path));
}

PyObject *native_is_nested(PyObject *self, PyObject *none)
{
    struct native_context *context = (struct native_context *)self;
    (void)none;
    if (!context->handle || is_watched(context) || native_is_true(context->agent, AGENT_DEAD)) {
        return Py_NewRef(Py_False);
    }
    int status = is_forward_settled(context);
    if (status > 0) {
        status = is_inside_module(context);
    }
    return answer_bool(settle_status(context, status, 0));
}

/* A forward pass begins here, as far as anybody can know. */
static int can_begin_forward(const struct native_context *context)
{
    int idle = native_is_ours(context) ? native_is_idle(context) : 0;
    if (idle <= 0 || !is_outside(context) || native_is_true(context->steps, STEPS_IN_CLOSURE)) {
        return idle < 0 ? -1 : 0;
    }
    int known = is_forward_settled(context);
    return known < 0 ? -1 : !known;
}

/* The module is the one that began the forward pass of the last step, and is not inside another
 * one. */
static int is_usual_module(const struct native_context *context, PyObject *module)
{
    if (context->inside || !context->outermost ||
        PyWeakref_GetObject(context->outermost) != module) {
        return 0;
    }
    int inside = native_is_handed_over(context) ? context->wrapped > 0 : is_inside_module(context);
    return inside < 0 ? -1 : !inside;
}

/* The module that began the forward pass does not train: see modules.Modules. */
static int is_evaluating(const struct native_context *context)
{
    PyObject *training =
        PyObject_GetAttr(PyWeakref_GetObject(context->outermost), native_names.training);
    int status = training ? training != Py_True : -1;
    Py_XDECREF(training);
    return status;
}

int native_publish_path(struct native_context *context)
{
    PyObject *local = context->local;
    if (!context->inside || !native_is_ours(context)) {
        return 0;
    }
    context->inside = false;
    int evaluation = is_evaluating(context);
    PyObject *path = evaluation ? context->evaluation_path : context->outermost_path;
    return evaluation < 0 || PyObject_SetAttr(local, native_names.site, Py_None) < 0 ||
                   PyObject_SetAttr(local, native_names.evaluates,
                                    evaluation ? Py_True : Py_False) < 0 ||
                   PyObject_SetAttr(local, native_names.path, path) < 0
               ? -1
               : 0;
}

int native_begin_forward(struct native_context *context, PyObject *module)
{
    int status = can_begin_forward(context);
    if (status > 0) {
        status = is_usual_module(context, module);
    }
    if (status > 0) { /* Python notices that an evaluation begins */
        int evaluation = is_evaluating(context);
        status = evaluation < 0 ? -1 : !evaluation;
    }
    if (status > 0) {
        native_set(context->steps, STEPS_FORWARD, Py_True);
        native_turn(context->clock, SECTION_FORWARD);
        enter_phase(context, GRADB_FORWARD);
        status = !is_watched(context);
        context->inside = status > 0;
    }
    return settle_status(context, status, 0);
}

/* The path ends with the module that it was set for, even if that raised. */
void native_leave_module(struct native_context *context)
{
    if (context->inside) {
        context->inside = false;
        return;
    }
    PyObject *nowhere = PyUnicode_FromString("");
    struct native_error error = native_take_error();
    if (!nowhere || PyObject_SetAttr(context->local, native_names.path, nowhere) < 0) {
        PyErr_Clear(); /* a wrong path must not stop the training */
    }
    Py_XDECREF(nowhere);
    native_restore_error(error);
}

PyObject *native_is_outermost(PyObject *self, PyObject *module)
{
    struct native_context *context = (struct native_context *)self;
    int status = native_begin_forward(context, module);
    if (status > 0 &&
        native_publish_path(context) < 0) { /* Python's wrapper resets the path itself */
        status = settle_status(context, -1, 0);
    }
    return answer_bool(status);
}

PyObject *native_outermost(PyObject *self, PyObject *args)
{
    struct native_context *context = (struct native_context *)self;
    PyObject *reference, *path, *evaluation;
    if (!PyArg_ParseTuple(args, "OUU:outermost", &reference, &path, &evaluation)) {
        return NULL;
    }
    if (!PyWeakref_CheckRef(reference)) {
        PyErr_SetString(PyExc_TypeError, "outermost() takes a weak reference first");
        return NULL;
    }
    native_swap(&context->outermost, Py_NewRef(reference));
    native_swap(&context->outermost_path, Py_NewRef(path));
    native_swap(&context->evaluation_path, Py_NewRef(evaluation));
    return Py_NewRef(Py_None);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The pass adds to the gradients of the parameters. */
static int is_accumulating(PyObject *keywords)
{
    PyObject *given = PyDict_GetItemWithError(keywords, native_names.accumulates);
    return given ? given == Py_True : PyErr_Occurred() ? -1 : 1;
}

/* It is the outermost pass of an idle step, and gives gradients. */
static int is_plain_pass(const struct native_context *context, PyObject *keywords)
{
    int idle = native_is_ours(context) ? native_is_idle(context) : 0;
    if (idle <= 0 || !is_outside(context) || !native_is_zero(context->backward, BACKWARD_DEPTH)) {
        return idle < 0 ? -1 : 0;
    }
    return is_accumulating(keywords);
}

/* A pass begins, but no module has announced the forward pass: nobody wrapped the module that it
 * began with. */
static bool missed_forward(const struct native_context *context)
{
    return native_is_handed_over(context) && !native_is_true(context->steps, STEPS_FORWARD);
}

int native_begin_pass(struct native_context *context, PyObject *tensors, PyObject *gradients,
                      PyObject *keywords)
{
    struct native_number loss;
    int status = is_plain_pass(context, keywords);
    if (status > 0 && missed_forward(context)) {
        status =
            native_call(context->agent, native_names.forward_missed, NULL, NULL, NULL) < 0 ? -1 : 1;
    }
    if (status > 0) {
        status = native_find_loss(context, tensors, gradients, &loss);
    }
    if (status > 0) {
        native_turn(context->clock, SECTION_BACKWARD);
        context->clock->left = context->clock->since;
        enter_phase(context, GRADB_BACKWARD);
        status = is_watched(context) ? 0 : 1; /* it may have stopped there */
    }
    if (status > 0) {
        native_set_int(context->steps, STEPS_PASSES, 1);
        native_set_int(context->backward, BACKWARD_DEPTH, 1);
        native_set(context->agent, AGENT_IN_BACKWARD, Py_True);
        status =
            native_note_pass(context, loss) < 0 || native_clearing_begins(context) < 0 ? -1 : 1;
    }
    if (status < 0) { /* an interrupt: the pass does not begin */
        native_set(context->steps, STEPS_PASSES, native_zero);
        native_set(context->backward, BACKWARD_DEPTH, native_zero);
        native_set(context->agent, AGENT_IN_BACKWARD, Py_False);
    }
    return status;
}

int native_end_pass(struct native_context *context)
{
    bool plain = context->handle && !native_is_true(context->agent, AGENT_DEAD) &&
                 !native_is_true(context->agent, AGENT_WATCHING) &&
                 !native_is_true(context->steps, STEPS_DUE) &&
                 native_is_true(context->steps, STEPS_HAS_OPTIMIZER) &&
                 native_get_int(context->steps, STEPS_PASSES) == 1 &&
                 native_get_int(context->backward, BACKWARD_DEPTH) == 1;
    if (!plain) {
        return 0;
    }
    native_turn(context->clock, SECTION_GAP);
    double took = context->clock->since - context->clock->left;
    native_set_new(context->backward, BACKWARD_TOOK, PyFloat_FromDouble(took));
    native_set(context->backward, BACKWARD_DEPTH, native_zero);
    native_set(context->agent, AGENT_IN_BACKWARD, Py_False);
    native_set(context->steps, STEPS_PASSES, native_zero);
    enter_phase(context, GRADB_NO_PHASE); /* another pass may follow at once */
    int status = native_clearing_ends(context);
    native_set(context->steps, STEPS_FORWARD, Py_False);
    return status < 0 ? -1 : 1;
}

/* ---- the end of a step ----------------------------------------------------------------------- */

/* The next step is idle too, as far as anybody can know. */
static bool stays_idle(const struct native_context *context)
{
    return context->handle && context->idle_steps > 0 && !is_watched(context) &&
           !native_is_true(context->agent, AGENT_DEAD) &&
           __atomic_load_n(&context->handle->changes, __ATOMIC_RELAXED) == context->idle_changes &&
           context->is_connected(context->handle) == context->idle_connected;
}

static int save_if_asked(struct native_context *context)
{
    return context->wants_checkpoint(context->handle)
               ? native_call(context->steps, native_names.save, NULL, NULL, NULL)
               : 0;
}

/* Everything that was counted in the step goes to the debugger. */
static int report_step(struct native_context *context)
{
    bool told = context->is_connected(context->handle);
    native_turn(context->clock, SECTION_GAP);
    if (told) {
        gradb_times times = native_times(context->clock);
        context->timing(context->handle, &times);
    }
    native_restart(context->clock);
    return native_report_numbers(context, told);
}

/* The step has begun, like Steps.begin. */
static int note_step_begun(struct native_context *context, long long step)
{
    PyObject *steps = context->steps;
    if (native_set_new(steps, STEPS_STEP, PyLong_FromLongLong(step)) < 0) {
        return -1;
    }
    native_set(steps, STEPS_DUE, Py_False);
    native_set(steps, STEPS_FORWARD, Py_False);
    native_set_int(steps, STEPS_PHASE, GRADB_NO_PHASE);
    context->idle_steps--;
    if (!stays_idle(context)) {
        return native_call(context->agent, native_names.step_began, NULL, NULL, NULL);
    }
    native_set(context->graph, GRAPH_STEP, native_get(steps, STEPS_STEP));
    return 0;
}

/* One step ends and the next begins; the training may stop in between. If anything was asked for
 * there, Python does the rest. */
static int pause_between_steps(struct native_context *context, long long next)
{
    struct native_wait absence = native_begin_wait();
    context->step_end(context->handle);
    native_end_wait(context->clock, absence);
    if (!stays_idle(context)) {
        return native_call(context->steps, native_names.ended, NULL, NULL, NULL);
    }
    if (save_if_asked(context) < 0) {
        return -1;
    }
    absence = native_begin_wait();
    context->step_begin(context->handle, next);
    native_end_wait(context->clock, absence);
    return note_step_begun(context, next);
}

/* Like Steps.end. */
static int end_training_step(struct native_context *context)
{
    long long next = PyLong_AsLongLong(native_get(context->steps, STEPS_STEP)) + 1;
    if (PyErr_Occurred() || report_step(context) < 0 || save_if_asked(context) < 0) {
        return -1;
    }
    bool at_once = context->try_step && context->try_step(context->handle, next);
    if ((at_once ? note_step_begun(context, next) : pause_between_steps(context, next)) < 0) {
        return -1;
    }
    return context->handle && (!stays_idle(context) || context->wants_stop(context->handle))
               ? native_call(context->steps, native_names.end_training, NULL, NULL, NULL)
               : 0;
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* The optimizer was given a closure. */
static int has_closure(PyObject *args, PyObject *keywords)
{
    if (!PyTuple_Check(args) || PyTuple_Size(args) != 1 || !PyDict_Check(keywords)) {
        return 1;
    }
    return PyDict_Size(keywords) > 0 ? PyDict_Contains(keywords, native_names.closure) : 0;
}

static int begin_optimizer_step(struct native_context *context, PyObject *optimizer)
{
    PyObject *steps = context->steps;
    if (PyList_Append(native_get(steps, STEPS_RUNNING), optimizer) < 0) {
        return -1;
    }
    native_set(steps, STEPS_CLOSURES, native_zero);
    native_set(steps, STEPS_OTHERS, native_zero);
    native_set(steps, STEPS_HAS_OPTIMIZER, Py_True);
    native_turn(context->clock, SECTION_OPTIMIZER);
    enter_phase(context, GRADB_OPTIMIZER);
    return native_note_rates(context, optimizer);
}

int native_begin_optimizer(struct native_context *context, PyObject *optimizer, PyObject *args,
                           PyObject *keywords)
{
    int status = native_is_idle(context);
    if (status > 0 && (!is_outside(context) || !is_main_optimizer(context, optimizer))) {
        status = 0;
    }
    if (status > 0) {
        int closure = has_closure(args, keywords);
        status = closure < 0 ? -1 : !closure;
    }
    if (status > 0) {
        status = begin_optimizer_step(context, optimizer) < 0 ? -1 : 1;
    }
    return settle_status(context, status, 1);
}

PyObject *native_optimizer_begins(PyObject *self, PyObject *args)
{
    PyObject *optimizer, *given, *keywords;
    if (!PyArg_ParseTuple(args, "OO!O:optimizer_begins", &optimizer, &PyTuple_Type, &given,
                          &keywords)) {
        return NULL;
    }
    return answer_bool(
        native_begin_optimizer((struct native_context *)self, optimizer, given, keywords));
}

/* The main optimizer has stepped, and nothing but the step ends here. */
static int ends_plain_step(const struct native_context *context, PyObject *optimizer)
{
    PyObject *running = native_get(context->steps, STEPS_RUNNING);
    int idle = native_is_idle(context);
    if (idle <= 0 || PyList_Size(running) != 1 || PyList_GetItem(running, 0) != optimizer ||
        !is_main_optimizer(context, optimizer)) {
        return idle < 0 ? -1 : 0;
    }
    return native_is_zero(context->steps, STEPS_PASSES) &&
           !native_is_true(context->steps, STEPS_BY_HAND) &&
           native_get(context->scaler, SCALER_STEPPING) == Py_None;
}

static int finish_optimizer_step(struct native_context *context, PyObject *optimizer)
{
    PyObject *steps = context->steps;
    if (PyList_SetSlice(native_get(steps, STEPS_RUNNING), 0, 1, NULL) < 0) {
        return -1;
    }
    native_set(steps, STEPS_STEPPED, Py_True);
    if (native_clearing_stepped(context, optimizer) < 0 || native_note_stepped(context) < 0) {
        return -1;
    }
    native_set(steps, STEPS_FORWARD, Py_False);
    return end_training_step(context);
}

int native_end_optimizer(struct native_context *context, PyObject *optimizer)
{
    int status = ends_plain_step(context, optimizer);
    if (status > 0) {
        status = finish_optimizer_step(context, optimizer) < 0 ? -1 : 1;
    }
    return settle_status(context, status, 1);
}

PyObject *native_optimizer_ended(PyObject *self, PyObject *optimizer)
{
    return answer_bool(native_end_optimizer((struct native_context *)self, optimizer));
}
