// SPDX-License-Identifier: MIT
#include "frames.h"

#include "objects.h"

#include <stdint.h>

/* What Python 3.11 exports for PEP 523. Weak: other versions lack some of it. */
struct _PyInterpreterFrame;
typedef PyObject *(*evaluate_fn)(PyThreadState *, struct _PyInterpreterFrame *, int);
#define WEAK __attribute__((weak))
extern void _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState *, evaluate_fn) WEAK;
extern evaluate_fn _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState *) WEAK;
extern PyObject *_PyEval_EvalFrameDefault(PyThreadState *, struct _PyInterpreterFrame *, int) WEAK;
extern Py_ssize_t _PyEval_RequestCodeExtraIndex(freefunc) WEAK;
extern int _PyCode_GetExtra(PyObject *, Py_ssize_t, void **) WEAK;
extern int _PyCode_SetExtra(PyObject *, Py_ssize_t, void *) WEAK;

/* The first members of a frame of Python 3.11. begin_watching makes sure of it. */
struct known_frame {
    PyObject *function, *globals, *builtins, *locals, *code;
};

enum { FRAMES_PLAIN, FRAMES_WANTED, FRAMES_TRACER }; /* FRAMES_TRACER: a trace function of ours */
#define MAX_VERDICT 3

static struct {
    bool active;
    bool left; /* another evaluation function still calls ours */
    bool busy; /* our own Python code runs: nothing is traced */
    bool on;   /* `set` is the trace function of the thread */
    PyThreadState *thread;
    Py_ssize_t extra; /* where code objects keep their verdict; -1: there is none */
    uintptr_t round;  /* of verdicts: earlier ones are void */
    PyObject *probe;  /* a code object to recognize; borrowed, compared only */
    bool recognized;
    PyObject *decide, *trace, *chain, *aside, *settrace, *gettrace;
    PyObject *set;    /* `trace`, or what `chain` made of `theirs` */
    PyObject *theirs; /* or NULL */
} watch = {.extra = -1};

/* ---- tracing --------------------------------------------------------------------------------- */

/* An error of ours must not become one of the program; Ctrl-C comes again. */
static void settle_error(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        PyErr_SetInterrupt();
    } else {
        PyErr_WriteUnraisable(watch.decide);
    }
}

/* The thread is traced from now on. */
static int trace_from_here(void)
{
    PyObject *theirs = PyObject_CallNoArgs(watch.gettrace);
    if (!theirs || theirs == watch.set) {
        Py_XDECREF(theirs);
        return theirs ? 0 : -1;
    }
    PyObject *set = theirs == Py_None ? Py_NewRef(watch.trace)
                                      : PyObject_CallFunctionObjArgs(watch.chain, theirs, NULL);
    native_swap(&watch.set, set);
    native_swap(&watch.theirs, theirs);
    return set ? native_take_truth(PyObject_CallFunctionObjArgs(watch.settrace, set, NULL)) : -1;
}

/* The program's own trace function is set again, unless it has set another one meanwhile. */
static int trace_no_more(void)
{
    PyObject *now = PyObject_CallNoArgs(watch.gettrace);
    bool ours = now && now == watch.set;
    Py_XDECREF(now);
    if (!now || !ours) {
        return now ? 0 : -1;
    }
    return native_take_truth(PyObject_CallFunctionObjArgs(watch.settrace, watch.theirs, NULL));
}

static void set_tracing(bool on)
{
    if (on == watch.on) {
        return;
    }
    struct native_error error = native_take_error();
    bool busy = watch.busy;
    watch.busy = true;
    if ((on ? trace_from_here() : trace_no_more()) < 0) {
        settle_error();
    }
    watch.on = on;
    watch.busy = busy;
    native_restore_error(error);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int ask_verdict(PyObject *code)
{
    struct native_error error = native_take_error();
    bool busy = watch.busy;
    watch.busy = true;
    PyObject *answer = PyObject_CallFunctionObjArgs(watch.decide, code, NULL);
    watch.busy = busy;
    long verdict = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (verdict < 0 || verdict >= MAX_VERDICT) {
        verdict = -1;
        settle_error();
    }
    native_restore_error(error);
    return (int)verdict;
}

static int find_verdict(PyObject *code)
{
    void *known = NULL;
    if (_PyCode_GetExtra(code, watch.extra, &known) == 0 &&
        (uintptr_t)known / MAX_VERDICT == watch.round) {
        return (int)((uintptr_t)known % MAX_VERDICT);
    }
    uintptr_t round = watch.round;
    int verdict = ask_verdict(code);
    if (verdict < 0) { /* the next frame asks again */
        return FRAMES_PLAIN;
    }
    if (round == watch.round &&
        _PyCode_SetExtra(code, watch.extra, (void *)(round * MAX_VERDICT + (uintptr_t)verdict)) <
            0) {
        PyErr_Clear();
    }
    return verdict;
}

/* Runs a frame of the watched thread. If what is wanted changes meanwhile, native_frames_trace says
 * what holds for the frame that called it. */
static PyObject *run_frame(PyThreadState *thread, struct _PyInterpreterFrame *frame, int thrown)
{
    int verdict = find_verdict(((const struct known_frame *)frame)->code);
    if (verdict == FRAMES_TRACER) {
        watch.busy = true;
        PyObject *result = _PyEval_EvalFrameDefault(thread, frame, thrown);
        watch.busy = false;
        return result;
    }
    bool before = watch.on;
    uintptr_t round = watch.round;
    set_tracing(verdict == FRAMES_WANTED);
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, thrown);
    if (round == watch.round) {
        set_tracing(before);
    }
    return result;
}

/* ---- frames of other threads ----------------------------------------------------------------- */

/* A frame of this thread is judged, or runs: those that it calls are part of it. */
static _Thread_local bool is_aside;

/* The trace function of this thread becomes ours. Returns the one that it replaces; NULL: nothing
 * was done. */
static PyObject *trace_aside(void)
{
    PyObject *before = PyObject_CallNoArgs(watch.gettrace);
    int status =
        before ? native_take_truth(PyObject_CallFunctionObjArgs(watch.settrace, watch.trace, NULL))
               : -1;
    if (status < 0) {
        Py_CLEAR(before);
        settle_error();
    }
    return before;
}

/* Runs the outermost frame of a thread that is not watched. Where it runs for the watched one,
 * which waits, all that it calls is traced: that is little. */
static PyObject *run_aside(PyThreadState *thread, struct _PyInterpreterFrame *frame, int thrown)
{
    struct native_error error = native_take_error();
    is_aside = true;
    int ours = native_take_truth(PyObject_CallNoArgs(watch.aside));
    if (ours < 0) {
        settle_error();
    }
    PyObject *before = ours > 0 ? trace_aside() : NULL;
    native_restore_error(error);
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, thrown);
    if (before) {
        error = native_take_error();
        if (native_take_truth(PyObject_CallFunctionObjArgs(watch.settrace, before, NULL)) < 0) {
            settle_error();
        }
        Py_DECREF(before);
        native_restore_error(error);
    }
    is_aside = false;
    return result;
}

/* ---- all frames ------------------------------------------------------------------------------ */

static PyObject *run_any_frame(PyThreadState *thread, struct _PyInterpreterFrame *frame, int thrown)
{
    if (watch.active && thread == watch.thread) {
        if (watch.probe) {
            watch.recognized |= ((const struct known_frame *)frame)->code == watch.probe;
        } else if (!watch.busy) {
            return run_frame(thread, frame, thrown);
        }
    } else if (watch.active && !watch.probe && !is_aside && !PyEval_GetFrame()) {
        return run_aside(thread, frame, thrown);
    }
    return _PyEval_EvalFrameDefault(thread, frame, thrown);
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* Makes `run_any_frame` the one that runs frames. Only where there is no other: PyTorch's compiler
 * calls the one before it, but does not expect one after it. */
static bool can_evaluate(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    evaluate_fn now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (now == _PyEval_EvalFrameDefault) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, run_any_frame);
        watch.left = false;
    }
    return now == _PyEval_EvalFrameDefault || now == run_any_frame || watch.left;
}

static void stop_evaluating(void)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    watch.left = _PyInterpreterState_GetEvalFrameFunc(interpreter) != run_any_frame;
    if (!watch.left) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
    }
}

static bool is_known_version(void)
{
    PyObject *number = PySys_GetObject("hexversion"); /* borrowed */
    bool known = number && PyLong_AsLong(number) >> 16 == 0x030b;
    return known && _PyInterpreterState_SetEvalFrameFunc && _PyInterpreterState_GetEvalFrameFunc &&
           _PyEval_EvalFrameDefault && _PyEval_RequestCodeExtraIndex && _PyCode_GetExtra &&
           _PyCode_SetExtra;
}

/* Runs a function to see whether its frame comes by, with its code where it should be. */
static int probe_frames(PyObject *function)
{
    PyObject *code = PyObject_GetAttrString(function, "__code__");
    watch.recognized = false;
    watch.probe = code;
    PyObject *done = code ? PyObject_CallFunctionObjArgs(function, Py_None, NULL) : NULL;
    watch.probe = NULL;
    Py_XDECREF(code);
    Py_XDECREF(done);
    return done ? watch.recognized : -1;
}

/* Only the watched thread has the state of its tracing. */
static bool is_watched_thread(void)
{
    return watch.active && PyThreadState_Get() == watch.thread;
}

PyObject *native_frames_end(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    if (watch.active) {
        if (is_watched_thread()) {
            set_tracing(false);
        }
        watch.active = watch.on = false;
        watch.round++;
        stop_evaluating();
    }
    return Py_NewRef(Py_None);
}

PyObject *native_frames_trace(PyObject *module, PyObject *wanted)
{
    (void)module;
    if (is_watched_thread()) {
        set_tracing(wanted == Py_True);
    }
    return Py_NewRef(Py_None);
}

/* Watches from now on. 0: it cannot. */
static int begin_watching(PyObject *decide, PyObject *trace, PyObject *chain, PyObject *aside)
{
    if (watch.extra < 0) {
        watch.extra = _PyEval_RequestCodeExtraIndex(NULL);
    }
    if (watch.extra < 0 || !can_evaluate()) {
        return 0;
    }
    watch.active = true;
    watch.thread = PyThreadState_Get();
    watch.round++;
    native_swap(&watch.decide, Py_NewRef(decide));
    native_swap(&watch.trace, Py_NewRef(trace));
    native_swap(&watch.chain, Py_NewRef(chain));
    native_swap(&watch.aside, Py_NewRef(aside));
    native_swap(&watch.settrace, Py_XNewRef(PySys_GetObject("settrace")));
    native_swap(&watch.gettrace, Py_XNewRef(PySys_GetObject("gettrace")));
    return watch.settrace && watch.gettrace ? probe_frames(decide) : 0;
}

PyObject *native_frames_begin(PyObject *module, PyObject *args)
{
    PyObject *decide, *trace, *chain, *aside;
    if (!PyArg_ParseTuple(args, "OOOO:frames_begin", &decide, &trace, &chain, &aside)) {
        return NULL;
    }
    if (!is_known_version()) {
        return Py_NewRef(Py_False);
    }
    if (watch.active) {
        set_tracing(false);
    }
    int status = begin_watching(decide, trace, chain, aside);
    if (status <= 0) {
        Py_XDECREF(native_frames_end(module, NULL));
    }
    return status < 0 ? NULL : PyBool_FromLong(status);
}
