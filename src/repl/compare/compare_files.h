// SPDX-License-Identifier: GPL-3.0-or-later
/* `compare` of files, directories, dumps and sessions, and what first-divergence shares with it. */
#ifndef GD_REPL_COMPARE_FILES_H
#define GD_REPL_COMPARE_FILES_H

#include "repl/compare/compare_rows.h"
#include "repl/compare/sides.h"

#define MAX_OWN_TOLERANCES 16

struct own_tolerance { /* for matching names */
    const char *pattern;
    struct gd_tolerance tolerance;
};

struct compare_options {
    enum gd_profile profile;
    bool has_rtol, has_atol;
    double rtol, atol;
    struct own_tolerance own[MAX_OWN_TOLERANCES];
    int own_count;
    bool equal_nan;
    struct gd_map *map;
    enum gd_how last;
    const char *csv;
    const char *on; /* only matching names; NULL: all */
    int64_t step;   /* INT64_MIN: not given */
    int64_t step_b; /* step of B if it differs; INT64_MIN: not given */
    int64_t rank;   /* -1: not given */
    struct rows_shown shown;
};

/* Takes the options out of call->argv. compare_options_free frees the map. */
int compare_options_take(struct command_call *call, struct compare_options *ret,
                         struct gd_err *err);
void compare_options_free(struct compare_options *options);
/* The tolerance for a pair of these names. false: the profile decides. */
bool compare_tolerance(const struct compare_options *options, const char *a, const char *b,
                       struct gd_tolerance *ret);

/* The remaining words mean two files, dumps or sessions. */
bool compare_is_of_files(struct command_call *call);
int compare_files(struct command_call *call, struct gd_err *err);
/* `compare loss LOG [LOG]`. */
int compare_loss(struct command_call *call, struct gd_err *err);
/* The exit status says that there are differences. */

/* The steps and ranks that both sides have: one comparison each. */
struct compare_step {
    size_t rank_a, rank_b;
    int64_t a, b;
};
int compare_steps(const struct side *a, const struct side *b, const struct compare_options *options,
                  struct compare_step **ret, size_t *count, struct gd_err *err);
/* How many wanted steps (of a rank) only one side has. */
size_t compare_steps_left_out(const struct side *a, const struct side *b,
                              const struct compare_options *options,
                              const struct compare_step *steps, size_t count);

#endif
