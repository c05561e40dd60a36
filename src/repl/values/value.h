// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Values as commands talk of them: a tensor expression (NODE[:SLOT][SLICE], $N[SLICE]) fetched,
 * with its statistics, and how it is printed and recorded.
 */
#ifndef GD_REPL_VALUE_H
#define GD_REPL_VALUE_H

#include "engine/format.h"
#include "repl/core/command.h"

enum value_which { VALUE_CURRENT, VALUE_PREVIOUS, VALUE_DIFFERENCE };

/* Bins of the inline histogram. */
#define VALUE_BINS 16

struct value {
    const char *label; /* "NODE:0[0, :]" or "$3[1]", in call->arena; unsafe to print as it is */
    enum value_which which;
    bool is_history; /* from $N: arg is not set */
    struct tensor_arg arg;
    struct gd_tensor *tensor; /* owned; NULL when only the statistics are known */
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t step;      /* whose value it is; -1 unknown */
    int64_t prev_step; /* difference: of the value subtracted; -1 unknown */
    bool has_stats;
    struct gd_stats stats; /* of what was asked for: the slice, the difference */
    bool has_histogram;    /* of the finite elements between stats.min and stats.max */
    uint64_t histogram[VALUE_BINS];
    bool has_change;       /* change holds statistics of the current against the previous value */
    bool has_change_count; /* change.mismatch is of elements that are not equal */
    struct gd_stats change;
    const char *note; /* why tensor is NULL, or NULL */
};

void value_deinit(struct value *value);

/* Parses the expression; nothing is fetched. NULL or "." is the current node. */
int value_parse(struct command_call *call, const char *text, struct value *ret, struct gd_err *err);

enum value_need {
    VALUE_STATS,    /* statistics only, computed where the data lives */
    VALUE_ELEMENTS, /* the elements, whatever they cost */
    VALUE_SHOW,     /* elements unless the tensor is large: then statistics, and note says so */
};
/* Fetches what was parsed. On failure `value` stays as it was parsed. A previous value that was not
 * kept is kept from now on, and the error says so. Elements come with statistics (when the dtype
 * has any) and a histogram. */
int value_fetch(struct command_call *call, struct value *value, enum value_need need,
                struct gd_err *err);

/* After a fetch of a current value: what changed since the step before, where that is known without
 * a fetch of the old value. */
void value_know_change(struct command_call *call, struct value *value);

/* The shape and dtype that the graph (or the history) declares, the slice applied, without
 * fetching. GD_ENODATA: unknown. */
int value_declared(struct command_call *call, const struct value *value, enum gd_dtype *dtype,
                   struct gd_shape *shape, struct gd_err *err);

/* The format that the settings and a command's letters ask for. GD_EUSAGE: an unknown letter. */
int value_format(struct command_call *call, const char *letters, struct gd_format *ret,
                 struct gd_err *err);

#define VALUE_AGE 64
/* "of step 2 (now at step 3)" of a current value that is not of the step at which the session is
 * stopped, "of step 3 or an earlier one" where that is unknown; "" of any other. */
const char *value_age(const struct gd_session *session, int64_t step, char out[VALUE_AGE]);
/* "LABEL at step 12, the step before" ...: the name and, when it is not the current step's value,
 * whose it is. */
const char *value_title(struct command_call *call, const struct value *value);
/* The one-line summary; the change to the previous value follows on its own line for a difference.
 */
void value_print_summary(struct command_call *call, const struct value *value);
void value_print_change(struct command_call *call, const struct gd_stats *change, bool count);
/* The elements as numpy lays them out. */
int value_print_elements(struct command_call *call, const struct value *value,
                         const struct gd_format *format, struct gd_err *err);
/* Everything into a record: name, node, slot, dtype, shape, step, stats, and values when `format`
 * is not NULL (nested lists; null and "truncated" over the threshold unless format->all). */
void value_record(struct command_call *call, const struct value *value,
                  const struct gd_format *format, cJSON *object);

/* "[0, :]", "" for the whole tensor. */
const char *value_slice_text(struct command_call *call, const struct gd_slice *slice);
/* One element; a complex one is [real, imaginary]. */
cJSON *value_element_record(enum gd_dtype dtype, const unsigned char *p);
/* Statistics as an object. */
cJSON *value_stats_record(const struct gd_stats *stats);

/* cur - prev, element by element: floats in their own type, integers and bool as int64. Statistics
 * of the difference are the caller's. GD_EINVAL: shapes or types differ. GD_EINTR: Ctrl-C. */
int value_subtract(struct command_call *call, const struct gd_tensor *cur,
                   const struct gd_tensor *prev, struct gd_tensor **ret, struct gd_err *err);

/* Takes "prev", "previous" or "diff" from the end of call->argv. */
enum value_which value_take_which(struct command_call *call);
/* Values that one word names: a bare node names all of its slots. */
uint32_t value_slots(struct command_call *call, const struct value *value);

#endif
