// SPDX-License-Identifier: MIT
/*
 * Steps that nobody looks at: what steps.Steps, backward.Backward and what they call do in them,
 * without Python. Once in each step, with caches that the training has filled with other things,
 * what costs is how much memory is touched: Python's way through the same takes ten times as long.
 *
 * Python says that steps are idle, for so many to come (native_idle), and takes that back when
 * anything is asked of it. Each of these methods does all or nothing: nothing where the step is no
 * longer idle, or takes a turn that nearly none takes.
 */
#include "native.h"

/* ---- what idle means ------------------------------------------------------------------------- */

static bool is_wanted(const struct native_context *context)
{
    return (context->handle && GRADB_IS_ARMED(context->handle)) ||
           native_is_true(context->agent, AGENT_WANTED) ||
           native_get(context->agent, AGENT_OVERFLOW) != Py_None;
}

bool native_is_ours(const struct native_context *context)
{
    return PyThread_get_thread_ident() == context->thread;
}

/* 1, 0, or -1: a CUDA graph is being recorded: nothing may be done then. */
static int is_recording(const struct native_context *context)
{
    if (!context->recording) {
        return 0;
    }
    PyObject *answer = PyObject_CallNoArgs(context->recording);
    int status = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return status;
}

/* 1, 0, or -1: nobody looks, and nothing else is asked for either. */
static int is_idle(const struct native_context *context)
{
    if (!context->handle || context->idle_steps <= 0 || is_wanted(context) ||
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

/* The steps of this optimizer are the training's. */
static bool is_main(const struct native_context *context, PyObject *optimizer)
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
    native_swap(&context->recording, recording == Py_None ? NULL : Py_NewRef(recording));
    return Py_NewRef(Py_None);
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* The training goes over into another phase; it may stand here. */
static void enter(struct native_context *context, gradb_phase phase)
{
    if (native_int(context->steps, STEPS_PHASE) == (long)phase) {
        return;
    }
    native_put_int(context->steps, STEPS_PHASE, (long)phase);
    if (!context->try_enter || !context->try_enter(context->handle, phase)) {
        struct native_absence absence = native_leave();
        context->enter(context->handle, phase);
        native_return(context->clock, absence);
    }
}

/* The status, or -1 for the interrupt that came; a fault of ours is told, and it is `done` then:
 * the agent is off. */
static int settle(struct native_context *context, int status, int done)
{
    if (!PyErr_Occurred()) {
        return status;
    }
    return native_fault(context) < 0 ? -1 : done;
}

/* What a method returns. */
static PyObject *answer(int status)
{
    return status < 0 ? NULL : PyBool_FromLong(status);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* 1, 0, or -1: a forward pass is known to run, or what runs needs none. */
static int is_known(const struct native_context *context)
{
    if (native_is_true(context->steps, STEPS_FORWARD)) {
        return 1;
    }
    int gradients = native_has_gradients(context);
    return gradients < 0 ? -1 : !gradients;
}

/* 1, 0, or -1: the thread is inside of a module. */
static int has_path(const struct native_context *context)
{
    if (context->inside && native_is_ours(context)) {
        return 1;
    }
    PyObject *path = PyObject_GetAttr(context->local, native_names.path);
    int status = path ? PyObject_IsTrue(path) : -1;
    Py_XDECREF(path);
    return status;
}

PyObject *native_is_nested(PyObject *self, PyObject *none)
{
    struct native_context *context = (struct native_context *)self;
    (void)none;
    if (!context->handle || is_wanted(context) || native_is_true(context->agent, AGENT_DEAD)) {
        return Py_NewRef(Py_False);
    }
    int status = is_known(context);
    if (status > 0) {
        status = has_path(context);
    }
    return answer(settle(context, status, 0));
}

/* 1, 0, or -1: a forward pass begins here, as far as anybody knows. */
static int begins_forward(const struct native_context *context)
{
    int idle = native_is_ours(context) ? is_idle(context) : 0;
    if (idle <= 0 || !is_outside(context) || native_is_true(context->steps, STEPS_IN_CLOSURE)) {
        return idle < 0 ? -1 : 0;
    }
    int known = is_known(context);
    return known < 0 ? -1 : !known;
}

/* 1, 0, or -1: the module is the one that began the forward pass of the last step, and is not
 * inside of another one. */
static int is_usual(const struct native_context *context, PyObject *module)
{
    if (context->inside || !context->outermost ||
        PyWeakref_GetObject(context->outermost) != module) {
        return 0;
    }
    int inside = native_is_handed_over(context) ? context->wrapped > 0 : has_path(context);
    return inside < 0 ? -1 : !inside;
}

/* 1, 0, or -1: the module that began the forward pass does not train: see modules.Modules. */
static int evaluates(const struct native_context *context)
{
    PyObject *training =
        PyObject_GetAttr(PyWeakref_GetObject(context->outermost), native_names.training);
    int status = training ? training != Py_True : -1;
    Py_XDECREF(training);
    return status;
}

int native_tell_path(struct native_context *context)
{
    PyObject *local = context->local;
    if (!context->inside || !native_is_ours(context)) {
        return 0;
    }
    context->inside = false;
    int evaluation = evaluates(context);
    PyObject *path = evaluation ? context->evaluation_path : context->outermost_path;
    return evaluation < 0 || PyObject_SetAttr(local, native_names.site, Py_None) < 0 ||
                   PyObject_SetAttr(local, native_names.evaluates,
                                    evaluation ? Py_True : Py_False) < 0 ||
                   PyObject_SetAttr(local, native_names.path, path) < 0
               ? -1
               : 0;
}

int native_begins_with(struct native_context *context, PyObject *module)
{
    int status = begins_forward(context);
    if (status > 0) {
        status = is_usual(context, module);
    }
    if (status > 0) {
        native_set(context->steps, STEPS_FORWARD, Py_True);
        native_turn(context->clock, SECTION_FORWARD);
        enter(context, GRADB_FORWARD);
        status = !is_wanted(context);
        context->inside = status > 0;
    }
    return settle(context, status, 0);
}

/* The path ends with the module that it was set for, whether that has raised or not. */
void native_leaves(struct native_context *context)
{
    if (context->inside) {
        context->inside = false;
        return;
    }
    PyObject *type, *value, *traceback, *nowhere = PyUnicode_FromString("");
    PyErr_Fetch(&type, &value, &traceback);
    if (!nowhere || PyObject_SetAttr(context->local, native_names.path, nowhere) < 0) {
        PyErr_Clear(); /* names are a service */
    }
    Py_XDECREF(nowhere);
    PyErr_Restore(type, value, traceback);
}

PyObject *native_is_outermost(PyObject *self, PyObject *module)
{
    struct native_context *context = (struct native_context *)self;
    int status = native_begins_with(context, module);
    if (status > 0 && native_tell_path(context) < 0) { /* Python's wrapper ends the path itself */
        status = settle(context, -1, 0);
    }
    return answer(status);
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

/* 1, 0, or -1: the pass adds to the gradients of the parameters. */
static int accumulates(PyObject *keywords)
{
    PyObject *given = PyDict_GetItemWithError(keywords, native_names.accumulates);
    return given ? given == Py_True : PyErr_Occurred() ? -1 : 1;
}

/* 1, 0, or -1: it is the outermost pass of an idle step, and one that gives gradients. */
static int is_plain_pass(const struct native_context *context, PyObject *keywords)
{
    int idle = native_is_ours(context) ? is_idle(context) : 0;
    if (idle <= 0 || !is_outside(context) || !native_is_zero(context->backward, BACKWARD_DEPTH)) {
        return idle < 0 ? -1 : 0;
    }
    return accumulates(keywords);
}

/* A pass begins, and no module has told that a forward pass did: those that it has begun with are
 * not heard of. */
static bool is_missed(const struct native_context *context)
{
    return native_is_handed_over(context) && !native_is_true(context->steps, STEPS_FORWARD);
}

int native_pass_begins(struct native_context *context, PyObject *tensors, PyObject *gradients,
                       PyObject *keywords)
{
    struct native_number loss;
    int status = is_plain_pass(context, keywords);
    if (status > 0 && is_missed(context)) {
        status =
            native_call(context->agent, native_names.forward_missed, NULL, NULL, NULL) < 0 ? -1 : 1;
    }
    if (status > 0) {
        status = native_loss_of(context, tensors, gradients, &loss);
    }
    if (status > 0) {
        native_turn(context->clock, SECTION_BACKWARD);
        context->clock->left = context->clock->since;
        enter(context, GRADB_BACKWARD);
        status = is_wanted(context) ? 0 : 1; /* it may have stood there */
    }
    if (status > 0) {
        native_put_int(context->steps, STEPS_PASSES, 1);
        native_put_int(context->backward, BACKWARD_DEPTH, 1);
        native_set(context->agent, AGENT_IN_BACKWARD, Py_True);
        status =
            native_note_pass(context, loss) < 0 || native_clearing_begins(context) < 0 ? -1 : 1;
    }
    if (status < 0) { /* an interrupt: it does not begin */
        native_set(context->steps, STEPS_PASSES, native_zero);
        native_set(context->backward, BACKWARD_DEPTH, native_zero);
        native_set(context->agent, AGENT_IN_BACKWARD, Py_False);
    }
    return status;
}

int native_pass_ends(struct native_context *context)
{
    bool plain = context->handle && !native_is_true(context->agent, AGENT_DEAD) &&
                 !native_is_true(context->agent, AGENT_WANTED) &&
                 !native_is_true(context->steps, STEPS_DUE) &&
                 native_is_true(context->steps, STEPS_HAS_OPTIMIZER) &&
                 native_int(context->steps, STEPS_PASSES) == 1 &&
                 native_int(context->backward, BACKWARD_DEPTH) == 1;
    if (!plain) {
        return 0;
    }
    native_turn(context->clock, SECTION_GAP);
    double took = context->clock->since - context->clock->left;
    native_put(context->backward, BACKWARD_TOOK, PyFloat_FromDouble(took));
    native_set(context->backward, BACKWARD_DEPTH, native_zero);
    native_set(context->agent, AGENT_IN_BACKWARD, Py_False);
    native_set(context->steps, STEPS_PASSES, native_zero);
    enter(context, GRADB_NO_PHASE); /* another pass may follow at once */
    int status = native_clearing_ends(context);
    native_set(context->steps, STEPS_FORWARD, Py_False);
    return status < 0 ? -1 : 1;
}

/* ---- the end of a step ----------------------------------------------------------------------- */

/* The next step is idle, too, as far as anybody can tell. */
static bool goes_on(const struct native_context *context)
{
    return context->handle && context->idle_steps > 0 && !is_wanted(context) &&
           !native_is_true(context->agent, AGENT_DEAD) &&
           context->is_connected(context->handle) == context->idle_connected;
}

static int save_if_asked(struct native_context *context)
{
    return context->wants_checkpoint(context->handle)
               ? native_call(context->steps, native_names.save, NULL, NULL, NULL)
               : 0;
}

/* What was counted and noted in it goes to the debugger. */
static int tell_step(struct native_context *context)
{
    bool told = context->is_connected(context->handle);
    native_turn(context->clock, SECTION_GAP);
    if (told) {
        gradb_times times = native_times(context->clock);
        context->timing(context->handle, &times);
    }
    native_restart(context->clock);
    return native_tell_numbers(context, told);
}

/* The step has begun, as Steps.begin has it. */
static int note_begun(struct native_context *context, long long step)
{
    PyObject *steps = context->steps;
    if (native_put(steps, STEPS_STEP, PyLong_FromLongLong(step)) < 0) {
        return -1;
    }
    native_set(steps, STEPS_DUE, Py_False);
    native_set(steps, STEPS_FORWARD, Py_False);
    native_put_int(steps, STEPS_PHASE, GRADB_NO_PHASE);
    context->idle_steps--;
    if (!goes_on(context)) {
        return native_call(context->agent, native_names.step_began, NULL, NULL, NULL);
    }
    native_set(context->graph, GRAPH_STEP, native_get(steps, STEPS_STEP));
    return 0;
}

/* One step ends and the next begins, and the debugger may have its way in between: what follows is
 * Python's when it did. */
static int stand(struct native_context *context, long long next)
{
    struct native_absence absence = native_leave();
    context->step_end(context->handle);
    native_return(context->clock, absence);
    if (!goes_on(context)) {
        return native_call(context->steps, native_names.ended, NULL, NULL, NULL);
    }
    if (save_if_asked(context) < 0) {
        return -1;
    }
    absence = native_leave();
    context->step_begin(context->handle, next);
    native_return(context->clock, absence);
    return note_begun(context, next);
}

/* As Steps.end. */
static int end(struct native_context *context)
{
    long long next = PyLong_AsLongLong(native_get(context->steps, STEPS_STEP)) + 1;
    if (PyErr_Occurred() || tell_step(context) < 0 || save_if_asked(context) < 0) {
        return -1;
    }
    bool at_once = context->try_step && context->try_step(context->handle, next);
    if ((at_once ? note_begun(context, next) : stand(context, next)) < 0) {
        return -1;
    }
    return context->handle && context->wants_stop(context->handle)
               ? native_call(context->steps, native_names.end_training, NULL, NULL, NULL)
               : 0;
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* 1, 0, or -1: the optimizer was given a closure. */
static int has_closure(PyObject *args, PyObject *keywords)
{
    if (!PyTuple_Check(args) || PyTuple_Size(args) != 1) {
        return 1;
    }
    if (!PyDict_Check(keywords)) {
        return 1;
    }
    return PyDict_Size(keywords) > 0 ? PyDict_Contains(keywords, native_names.closure) : 0;
}

static int begin_step(struct native_context *context, PyObject *optimizer)
{
    PyObject *steps = context->steps;
    if (PyList_Append(native_get(steps, STEPS_RUNNING), optimizer) < 0) {
        return -1;
    }
    native_set(steps, STEPS_CLOSURES, native_zero);
    native_set(steps, STEPS_OTHERS, native_zero);
    native_set(steps, STEPS_HAS_OPTIMIZER, Py_True);
    native_turn(context->clock, SECTION_OPTIMIZER);
    enter(context, GRADB_OPTIMIZER);
    return native_note_rates(context, optimizer);
}

int native_step_begins(struct native_context *context, PyObject *optimizer, PyObject *args,
                       PyObject *keywords)
{
    int status = is_idle(context);
    if (status > 0 && (!is_outside(context) || !is_main(context, optimizer))) {
        status = 0;
    }
    if (status > 0) {
        int closure = has_closure(args, keywords);
        status = closure < 0 ? -1 : !closure;
    }
    if (status > 0) {
        status = begin_step(context, optimizer) < 0 ? -1 : 1;
    }
    return settle(context, status, 1);
}

PyObject *native_optimizer_begins(PyObject *self, PyObject *args)
{
    PyObject *optimizer, *given, *keywords;
    if (!PyArg_ParseTuple(args, "OO!O:optimizer_begins", &optimizer, &PyTuple_Type, &given,
                          &keywords)) {
        return NULL;
    }
    return answer(native_step_begins((struct native_context *)self, optimizer, given, keywords));
}

/* 1, 0, or -1: it is the main one that has stepped, and nothing but the step ends. */
static int is_plain_end(const struct native_context *context, PyObject *optimizer)
{
    PyObject *running = native_get(context->steps, STEPS_RUNNING);
    int idle = is_idle(context);
    if (idle <= 0 || PyList_Size(running) != 1 || PyList_GetItem(running, 0) != optimizer ||
        !is_main(context, optimizer)) {
        return idle < 0 ? -1 : 0;
    }
    return native_is_zero(context->steps, STEPS_PASSES) &&
           !native_is_true(context->steps, STEPS_BY_HAND) &&
           native_get(context->scaler, SCALER_STEPPING) == Py_None;
}

static int end_step(struct native_context *context, PyObject *optimizer)
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
    return end(context);
}

int native_step_ended(struct native_context *context, PyObject *optimizer)
{
    int status = is_plain_end(context, optimizer);
    if (status > 0) {
        status = end_step(context, optimizer) < 0 ? -1 : 1;
    }
    return settle(context, status, 1);
}

PyObject *native_optimizer_ended(PyObject *self, PyObject *optimizer)
{
    return answer(native_step_ended((struct native_context *)self, optimizer));
}
