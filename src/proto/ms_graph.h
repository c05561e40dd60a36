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

#include "engine/graph.h"

#define GD_MS_MAX_NODES     50000000u /* of one GraphProto */
#define GD_MS_MAX_ATTRIBUTE 1024u     /* longer texts are dropped */

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

/* Adds or replaces the subgraph of that name and commits. GD_EPROTO: the bytes are no GraphProto,
 * or a node of it is no NodeProto: nothing was changed. GD_ELIMIT, GD_ENOMEM: what was added stays.
 */
int gd_ms_graph_load(struct gd_graph *graph, const uint8_t *data, size_t len,
                     struct gd_ms_graph_info *ret, struct gd_err *err);

/* The element type of a wire number; GD_DT_NONE for those without elements and unknown ones. */
enum gd_dtype gd_ms_dtype(int64_t wire);

#endif
