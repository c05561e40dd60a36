// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Matches the tensors of two sides, each at most once, in this order: by the user's map; by equal
 * names; by names that are equal under the rules between PyTorch and MindSpore (parameters, cells
 * and modules, scopes, wrapper prefixes, optimizer state); by equal values (fingerprints, in any
 * order of axes); between two matches, by order and shape.
 */
#ifndef GD_COMPARE_MATCH_H
#define GD_COMPARE_MATCH_H

#include "compare/tensor_table.h"

enum gd_how { GD_HOW_NONE, GD_HOW_MAP, GD_HOW_NAME, GD_HOW_RULES, GD_HOW_VALUES, GD_HOW_ORDER };
const char *gd_how_name(enum gd_how how);  /* "map", "name", ... */
double gd_how_confidence(enum gd_how how); /* 1: certain */

/* ---- maps ------------------------------------------------------------------------------------ */

/* Names of one side for those of the other. JSON: {"a": "b"}, or TroubleShooter's list of two such
 * objects, the second of which names converters. Other files are read as lines `a: b` in one or two
 * levels (msprobe's mapping files), or as msprobe's list of operators (ms_api, pt_api) whose
 * arguments are in the same order. Duplicate names are an error. */
struct gd_map;
int gd_map_read(const char *path, struct gd_map **ret, struct gd_err *err);
int gd_map_parse(const char *text, size_t size, struct gd_map **ret, struct gd_err *err);
void gd_map_free(struct gd_map *map); /* NULL is fine */
size_t gd_map_count(const struct gd_map *map);
void gd_map_pair(const struct gd_map *map, size_t index, const char **a, const char **b);
/* Translates a name: as a whole, otherwise (maps of lines) with its first part that is in the map
 * replaced. back: from right to left. False: not in the map. */
bool gd_map_name(const struct gd_map *map, const char *name, bool back, char *ret, size_t size);

/* ---- names ----------------------------------------------------------------------------------- */

/* The common spelling of a name in both frameworks: see common_names.c. Cut at size. */
void gd_name_common(const char *name, char *ret, size_t size);
/* num_batches_tracked and the like, which only one framework has. */
bool gd_name_is_alone(const char *name);
/* "state[3].exp_avg": the kind of state in common spelling ("m1") and its parameter's number; or
 * "moment1.fc.weight": its parameter's name, number -1. NULL: not optimizer state. */
const char *gd_name_state(const char *name, int64_t *number, const char **parameter);
/* Of what an optimizer makes, "optimizer/SGD/fc1/weight" or "optimizer/SGD/fc1/weight.moments": the
 * parameter and the common name of the state, NULL for the update. False: another name. */
bool gd_name_update(const char *name, const char **state, char *parameter, size_t size);

/* ---- matching -------------------------------------------------------------------------------- */

struct gd_match { /* two units; UINT32_MAX: none */
    uint32_t a, b;
    enum gd_how how;
};

struct gd_match_options {
    const struct gd_map *map; /* NULL: none */
    enum gd_how last;         /* the last method to try */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

struct gd_matching {
    struct gd_match *match; /* sorted by B; units that only A has follow their predecessor in A */
    size_t count;
    bool guessed; /* too large to align: paired in turn */
};
int gd_match_tables(struct gd_table *a, struct gd_table *b, const struct gd_match_options *options,
                    struct gd_matching *ret, struct gd_err *err);
void gd_matching_free(struct gd_matching *matching);
/* Whether both seem to have the same elements in another order of axes: transposed. Of the options
 * only go_on is used. */
int gd_match_is_turned(struct gd_table *a, struct gd_item *item_a, struct gd_table *b,
                       struct gd_item *item_b, const struct gd_match_options *options, bool *ret,
                       struct gd_err *err);

/* Whether two operators compute the same, in any framework's spelling; false if one is unknown. */
bool gd_op_is_alike(const char *a, const char *b);
/* Whether they are a node of the backward pass as our agents name it, and the same gradients come
 * first in both. Frameworks return those of a layer with bias in different orders. True for other
 * units. */
bool gd_op_is_alike_back(const struct gd_unit *a, const struct gd_unit *b);
bool gd_unit_is_back(const struct gd_unit *unit);
/* Whether the operator itself writes to the input, e.g. running statistics: tools may dump it
 * before or after. */
bool gd_op_changes_input(const char *op, uint16_t position);
/* Whether a unit completes its layer; otherwise the next unit's output is the layer's. */
enum gd_goes_on {
    GD_GOES_NOT,
    GD_GOES_ON_BIAS,  /* the next one adds the layer's bias */
    GD_GOES_ON_LAYER, /* the next unit is the layer itself, which makes this call */
};
enum gd_goes_on gd_unit_goes_on(const struct gd_table *table, uint32_t unit);

/* The item of a matched unit that corresponds to an item, by position among inputs or outputs.
 * NULL: none. */
struct gd_item *gd_match_item(struct gd_table *other, const struct gd_unit *unit,
                              const struct gd_item *item);

#endif
