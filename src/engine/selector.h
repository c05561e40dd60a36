// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Selectors: what a command applies to. One term or several joined by ',' or '|' (union), with
 * "except TERM" at the end (TERM may be several, too). A term is
 *   a node name        exact, or the end of one name after a '/'
 *   a glob             * ? []; '*' crosses '/'; without a '/' it is matched to the last component,
 * too /regex/            POSIX extended, anywhere in the name; "\/" is a slash (a plain one works,
 * too, where no blank, ',' or '|' follows it) a scope            with or without a trailing slash,
 * also the end of one scope's path weights gradients activations parameters all type:ReLU a glob,
 * case ignored at:FILE[:LINE]     file by the end of its path
 *   "..."              a name as it stands, whatever it contains
 */
#ifndef GD_ENGINE_SELECTOR_H
#define GD_ENGINE_SELECTOR_H

#include "engine/graph.h"

struct gd_selector;

/* GD_EINVAL with err->offset at the fault. */
int gd_selector_parse(const char *text, struct gd_selector **ret, struct gd_err *err);
void gd_selector_destroy(struct gd_selector *selector);

/* Nodes selected, in node order, each once; *ret is malloc'd (NULL when *count is 0).
 * GD_ENOTFOUND: a term that names one node or scope has none. GD_EAMBIGUOUS. GD_ENOMEM. */
int gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                        gd_node_id **ret, size_t *count, struct gd_err *err);

#endif
