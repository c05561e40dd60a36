// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The events of a trace in Chrome's JSON format, one after another, as the file has them: an array
 * of events, or an object with "traceEvents" and facts about the run. Memory does not grow with the
 * file. Times are in nanoseconds.
 */
#ifndef GD_DUMP_TRACE_EVENTS_H
#define GD_DUMP_TRACE_EVENTS_H

#include "dump/trace/trace_stream.h"

#define TRACE_MAX_NAME 1024 /* bytes; longer text is cut */
#define TRACE_MAX_ARGS 4096
#define TRACE_MAX_TIME (INT64_C(1) << 62)
/* Differences of possible times fit into int64_t. */
static inline bool trace_is_possible(int64_t start, int64_t duration)
{
    return start > -TRACE_MAX_TIME / 4 && duration >= 0 && start <= TRACE_MAX_TIME - duration;
}

struct trace_event { /* text is never NULL; "" or 0: not given */
    char phase;      /* 'X': start and duration; 'B', 'E', 'M', 'C', 's', 'f', 'i', ... */
    const char *name, *category, *process, *thread;
    int64_t start, duration;
    bool has_start, has_duration;
    bool bad_time; /* one of them is not a number, or impossible */
    /* Arguments: */
    const char *label; /* of 'M': the name that it gives */
    const char *dims;  /* of the inputs: "[[16,1,8,8],[4,1,3,3],[]]" */
    const char *types; /* "[\"float\",\"float\",\"\"]" */
    const char *stack; /* "model.py(12): forward;train.py(3): main", innermost first */
    const char *modules;
    uint64_t external, sequence; /* 0: none */
    bool is_backward;            /* has the thread of its forward operator */
    double value;                /* of 'C' */
    bool has_value;
};

struct trace_reader {
    /* An error ends the reading. */
    int (*on_event)(void *ctx, const struct trace_event *event, struct gd_err *err);
    /* A member of the file itself: "deviceProperties" is left out, "distributedInfo.rank" is
     * called so. */
    int (*on_fact)(void *ctx, const char *name, const char *value, struct gd_err *err);
    void *ctx;
};

/* *ret: how many events came, also on failure. GD_EPROTO: not a trace, or broken JSON. */
int trace_events_read(struct trace_stream *stream, const struct trace_reader *reader, uint64_t *ret,
                      struct gd_err *err);

/* Microseconds as text, "12.345", to nanoseconds. False: not a number, or impossible. */
bool trace_time_parse(const char *text, int64_t *ret);

#endif
