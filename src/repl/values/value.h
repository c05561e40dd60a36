// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Values of commands: a tensor expression (NODE[:SLOT][SLICE], $N[SLICE]) with its statistics, and
 * how it is printed and recorded.
 */
#ifndef GD_REPL_VALUE_H
#define GD_REPL_VALUE_H

#include "engine/format.h"
#include "repl/core/command.h"

enum value_which { VALUE_CURRENT, VALUE_PREVIOUS, VALUE_DIFFERENCE };

/* Bins of the inline histogram. */
#define VALUE_BINS 16

struct value {
    const char *label; /* "NODE:0[0, :]" or "$3[1]", in call->arena; not safe to print */
    enum value_which which;
    bool is_history; /* from $N: arg is not set */
    struct tensor_arg arg;
    struct gd_tensor *tensor; /* owned; NULL when only the statistics are known */
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t step;      /* step of the value; -1: unknown */
    int64_t prev_step; /* difference: step of the subtracted value; -1: unknown */
    bool has_stats;
    struct gd_stats stats; /* of the slice or difference */
    bool has_histogram;    /* of the finite elements between stats.min and stats.max */
    uint64_t histogram[VALUE_BINS];
    bool has_change;       /* change contains statistics of the current minus the previous value */
    bool has_change_count; /* change.mismatch counts elements that are not equal */
    struct gd_stats change;
    const char *note; /* why tensor is NULL, or NULL */
};

void value_deinit(struct value *value);

/* Parses the expression without fetching. NULL or ".": the current node. */
int value_parse(struct command_call *call, const char *text, struct value *ret, struct gd_err *err);

enum value_need {
    VALUE_STATS,    /* only statistics, computed where the data is */
    VALUE_ELEMENTS, /* the elements, whatever the cost */
    VALUE_SHOW,     /* the elements, or for a large tensor the statistics, with a note */
};
/* Fetches a parsed value. On failure `value` is unchanged. A previous value that was not kept is
 * kept from now on, and the error says so. Elements come with statistics (if the dtype has any) and
 * a histogram. */
int value_fetch(struct command_call *call, struct value *value, enum value_need need,
                struct gd_err *err);

/* After the fetch of a current value: adds what changed since the previous step, if that is known
 * without a fetch. */
void value_know_change(struct command_call *call, struct value *value);

/* The shape and dtype declared by the graph or the history, with the slice applied, without
 * fetching. GD_ENODATA: unknown. */
int value_declared(struct command_call *call, const struct value *value, enum gd_dtype *dtype,
                   struct gd_shape *shape, struct gd_err *err);

/* The format from the settings and the command's letters. GD_EUSAGE: unknown letter. */
int value_format(struct command_call *call, const char *letters, struct gd_format *ret,
                 struct gd_err *err);

#define VALUE_AGE 64
/* "of step 2 (now at step 3)" for a current value that is not of the session's step, "of step 3 or
 * earlier" if its step is unknown; "" for others. */
const char *value_age(const struct gd_session *session, int64_t step, char out[VALUE_AGE]);
/* "LABEL", with the step if it is not a value of the current one. */
const char *value_title(struct command_call *call, const struct value *value);
/* Prints the one-line summary; for a difference, the change on another line. */
void value_print_summary(struct command_call *call, const struct value *value);
void value_print_change(struct command_call *call, const struct gd_stats *change, bool count);
/* Prints the elements like numpy. */
int value_print_elements(struct command_call *call, const struct value *value,
                         const struct gd_format *format, struct gd_err *err);
/* Adds name, node, slot, dtype, shape, step, stats, and if `format` is not NULL, values (nested
 * lists; null and "truncated" over the threshold unless format->all). */
void value_record(struct command_call *call, const struct value *value,
                  const struct gd_format *format, cJSON *object);

/* "[0, :]", "" for the whole tensor. */
const char *value_slice_text(struct command_call *call, const struct gd_slice *slice);
/* One element; a complex one is [real, imaginary]. */
cJSON *value_element_record(enum gd_dtype dtype, const unsigned char *p);
/* Statistics as an object. */
cJSON *value_stats_record(const struct gd_stats *stats);

/* Takes "prev", "previous" or "diff" from the end of call->argv. */
enum value_which value_take_which(struct command_call *call);
const char *value_which_name(enum value_which which); /* "", "prev" or "diff" */
/* Values that one word names: a bare node names all of its slots. */
uint32_t value_slots(struct command_call *call, const struct value *value);

#endif
