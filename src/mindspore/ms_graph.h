// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Loads MindSpore's GraphProto into a gd_graph.
 *
 * The bytes are read in place: no message structs are created, nesting is limited, and memory grows
 * with the bytes received, never with a number in them. Operators keep their full name; parameters
 * and constants, which have none, become `<scope of their first consumer>/<name>` (a forward
 * consumer wins), with the client's name for their tensor as wire name.
 */
#ifndef GD_PROTO_MS_GRAPH_H
#define GD_PROTO_MS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/graph/graph.h"

#define GD_MS_MAX_NODES     50000000u /* of one GraphProto */
#define GD_MS_MAX_ATTRIBUTE 1024u     /* longer strings are dropped */
/* Our own fields, with numbers that MindSpore's messages leave free. */
#define GD_MS_INPUT_SLOT    1000 /* InputProto: the producer's slot */
#define GD_MS_NODE_WIRE     1000 /* NodeProto: wire_name, if different from full_name */

struct gd_ms_graph_info {
    char name[256];
    char root_name[64]; /* "" before 1.3 */
    uint32_t subgraph;
    uint32_t nodes, parameters, constants;
    uint32_t skipped; /* nodes without a name: calls without a primitive */
    uint32_t renamed; /* nodes whose name was taken */
    uint32_t broken;  /* broken attributes, types and inputs, left out */
};

/* Whether the bytes are a complete GraphProto, checking only its top level. */
bool gd_ms_graph_is_whole(const uint8_t *data, size_t len);

/* Adds or replaces the subgraph of that name and commits. other: used instead of a name that has
 * nodes already, which then stay; NULL: they are replaced. GD_EPROTO: not a GraphProto, or one of
 * its nodes is broken; nothing was changed. GD_ELIMIT, GD_ENOMEM: what was added stays. */
int gd_ms_graph_load(struct gd_graph *graph, const uint8_t *data, size_t len, const char *other,
                     struct gd_ms_graph_info *ret, struct gd_err *err);

/*
 * The same in pieces. `data` must stay valid until gd_ms_graph_end, which frees the load and must
 * always be called; an error in a step ends it, as in gd_ms_graph_load. Each step handles about the
 * given number of nodes, but the last one, which commits, is a single piece.
 */
struct gd_ms_graph_load;
int gd_ms_graph_begin(struct gd_graph *graph, const uint8_t *data, size_t len,
                      struct gd_ms_graph_load **ret, struct gd_err *err);
int gd_ms_graph_step(struct gd_ms_graph_load *load, uint32_t nodes, bool *done, struct gd_err *err);
/* Gives up a partial load: its subgraph is left without nodes. */
int gd_ms_graph_drop(struct gd_ms_graph_load *load, struct gd_err *err);
/* Progress: operators loaded, of how many (0: unknown yet). */
void gd_ms_graph_at(const struct gd_ms_graph_load *load, uint64_t *done, uint64_t *total);
const struct gd_ms_graph_info *gd_ms_graph_info(const struct gd_ms_graph_load *load);
void gd_ms_graph_end(struct gd_ms_graph_load *load); /* NULL is fine */

#endif
