// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's GraphProto into a gd_graph.
 *
 * The bytes are read in place: no message structs are made, nesting is bounded, and memory grows
 * with what was received, never with a number that was. Operators keep their full name; parameters
 * and constants, which have none, get `<scope of their first consumer>/<name>` (a consumer of the
 * forward pass wins), with the name that the client stores their tensor by as wire name.
 */
#ifndef GD_PROTO_MS_GRAPH_H
#define GD_PROTO_MS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/graph/graph.h"

#define GD_MS_MAX_NODES     50000000u /* of one GraphProto */
#define GD_MS_MAX_ATTRIBUTE 1024u     /* longer texts are dropped */
/* Our own fields, in the numbers that MindSpore's messages leave free. */
#define GD_MS_INPUT_SLOT    1000 /* of an InputProto: the slot of the producer */
#define GD_MS_NODE_WIRE     1000 /* of a NodeProto: wire_name, where it is another than full_name */

struct gd_ms_graph_info {
    char name[256];
    char root_name[64]; /* "" before 1.3 */
    uint32_t subgraph;
    uint32_t nodes, parameters, constants;
    uint32_t skipped; /* nodes without a name: calls of no primitive */
    uint32_t renamed; /* names that were taken */
    uint32_t broken;  /* attributes, types and inputs whose bytes make no sense: left out */
};

/* Whether the bytes are one whole GraphProto, as far as its own level goes. */
bool gd_ms_graph_is_whole(const uint8_t *data, size_t len);

/* Adds or replaces the subgraph of that name and commits. other: the name to take where there is
 * one with nodes already, which then stays; NULL: it is replaced. GD_EPROTO: the bytes are no
 * GraphProto, or a node of it is no NodeProto: nothing was changed. GD_ELIMIT, GD_ENOMEM: what was
 * added stays.
 */
int gd_ms_graph_load(struct gd_graph *graph, const uint8_t *data, size_t len, const char *other,
                     struct gd_ms_graph_info *ret, struct gd_err *err);

/*
 * The same in pieces. `data` must stay until gd_ms_graph_end, which frees and is due in any case;
 * an error of a step ends it, as that of gd_ms_graph_load does. A step does about so many nodes,
 * but the last one, which commits, is one piece.
 */
struct gd_ms_graph_load;
int gd_ms_graph_begin(struct gd_graph *graph, const uint8_t *data, size_t len,
                      struct gd_ms_graph_load **ret, struct gd_err *err);
int gd_ms_graph_step(struct gd_ms_graph_load *load, uint32_t nodes, bool *done, struct gd_err *err);
/* Gives it up half done: its subgraph is left without nodes. */
int gd_ms_graph_drop(struct gd_ms_graph_load *load, struct gd_err *err);
/* Operators that are in, of so many (0: not known yet). */
void gd_ms_graph_at(const struct gd_ms_graph_load *load, uint64_t *done, uint64_t *total);
const struct gd_ms_graph_info *gd_ms_graph_info(const struct gd_ms_graph_load *load);
void gd_ms_graph_end(struct gd_ms_graph_load *load); /* NULL is fine */

/* The element type of a wire number; GD_DT_NONE for those without elements and unknown ones. */
enum gd_dtype gd_ms_dtype(int64_t wire);

#endif
