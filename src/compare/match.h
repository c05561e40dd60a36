// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Which tensor of one side stands for which of the other. In this order, and never twice: a map
 * that the user gave; the same name; the same name by the rules between PyTorch and MindSpore
 * (parameters, cells and modules, scopes, prefixes of wrappers, state of optimizers); equal values
 * (fingerprints, in any order of the axes); what stands between two matches, by order and shape.
 */
#ifndef GD_COMPARE_MATCH_H
#define GD_COMPARE_MATCH_H

#include "compare/tensor_table.h"

enum gd_how { GD_HOW_NONE, GD_HOW_MAP, GD_HOW_NAME, GD_HOW_RULES, GD_HOW_VALUES, GD_HOW_ORDER };
const char *gd_how_name(enum gd_how how);  /* "map", "name", ... */
double gd_how_confidence(enum gd_how how); /* 1: certain */

/* ---- maps ------------------------------------------------------------------------------------ */

/* Names of one side by those of the other. JSON: {"a": "b"}, or TroubleShooter's list of two such
 * objects, of which the second names converters; anything else is read as lines of `a: b`, in one
 * or two levels, as msprobe's mapping files have it, or as its list of operators (ms_api, pt_api),
 * whose arguments stand in the same order. A name that the file has twice is refused. */
struct gd_map;
int gd_map_read(const char *path, struct gd_map **ret, struct gd_err *err);
int gd_map_parse(const char *text, size_t size, struct gd_map **ret, struct gd_err *err);
void gd_map_free(struct gd_map *map); /* NULL is fine */
size_t gd_map_count(const struct gd_map *map);
void gd_map_pair(const struct gd_map *map, size_t index, const char **a, const char **b);
/* What a name stands for: by a whole name, else (of lines) with the first part that the map has
 * replaced. back: from right to left. false: the map says nothing. */
bool gd_map_name(const struct gd_map *map, const char *name, bool back, char *ret, size_t size);

/* ---- names ----------------------------------------------------------------------------------- */

/* How both frameworks would spell a name if they agreed: see common_names.c. Cut at size. */
void gd_name_common(const char *name, char *ret, size_t size);
/* num_batches_tracked and the like, that the other framework does not have. */
bool gd_name_is_alone(const char *name);
/* "state[3].exp_avg": the kind of state in common spelling ("m1"), and its parameter's number; or
 * "moment1.fc.weight": its parameter's name, number -1. NULL: no state of an optimizer. */
const char *gd_name_state(const char *name, int64_t *number, const char **parameter);

/* ---- matching -------------------------------------------------------------------------------- */

struct gd_match { /* of two units; UINT32_MAX: none */
    uint32_t a, b;
    enum gd_how how;
};

struct gd_match_options {
    const struct gd_map *map; /* NULL: none */
    enum gd_how last;         /* nothing after this one is tried */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

struct gd_matching {
    struct gd_match *match; /* in the order of B, what only A has where it stands in A */
    size_t count;
    bool guessed; /* there was too much to align: paired in turn */
};
int gd_match_tables(struct gd_table *a, struct gd_table *b, const struct gd_match_options *options,
                    struct gd_matching *ret, struct gd_err *err);
void gd_matching_free(struct gd_matching *matching);
/* The elements of both seem to be the same in another order of the axes: transposed. Of the options
 * only go_on is used. */
int gd_match_is_turned(struct gd_table *a, struct gd_item *item_a, struct gd_table *b,
                       struct gd_item *item_b, const struct gd_match_options *options, bool *ret,
                       struct gd_err *err);

/* Two operators that compute the same, in any framework's spelling; false when one is not known. */
bool gd_op_is_alike(const char *a, const char *b);
/* An input that the operator itself writes to, as running statistics: whether a dump has it as it
 * was before or after is a matter of the tool. */
bool gd_op_changes_input(const char *op, uint16_t position);
/* Whether the layer is done with a unit; else the output of the next one is the layer's. */
enum gd_goes_on {
    GD_GOES_NOT,
    GD_GOES_ON_BIAS,  /* the next one adds the layer's bias */
    GD_GOES_ON_LAYER, /* the next one is the layer itself, around this call that it makes */
};
enum gd_goes_on gd_unit_goes_on(const struct gd_table *table, uint32_t unit);

/* Items of two units that stand for each other: both by their place among inputs and outputs. NULL:
 * there is none. */
struct gd_item *gd_match_item(struct gd_table *other, const struct gd_unit *unit,
                              const struct gd_item *item);

#endif
