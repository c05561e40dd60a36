// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Selectors: what a command applies to. One term or several joined by ',' or '|' (union). "except"
 * takes the terms behind it away from what stands before it, "with" adds again:
 *
 *   weights except *.bias with fc2.bias
 *
 * A term is one of
 *
 *   NAME             a node by its exact name, or by the end of one name after a '/'
 *   SCOPE, SCOPE/    all nodes below a scope, also by the end of one scope's path
 *   GLOB             * ? []; '*' crosses '/'; without a '/' also matched to the last component
 *   /REGEX/          POSIX extended, anywhere in the name; "\/" is a slash (a plain one, too,
 *                    where no blank, ',' or '|' follows it)
 *   weights gradients activations parameters all
 *   activations:relu activations by their function, which is the type: a glob, case ignored
 *   type:ReLU        by type: a glob, case ignored
 *   at:FILE[:LINE]   by a line of the stack; the file by the end of its path
 *   "..."            a name as it stands, whatever it contains: a '/' in front, ',' or '|' in it
 */
#ifndef GD_ENGINE_SELECTOR_H
#define GD_ENGINE_SELECTOR_H

#include "engine/graph/graph.h"

struct gd_selector;

/* GD_EINVAL with err->offset at the fault. */
int gd_selector_parse(const char *text, struct gd_selector **ret, struct gd_err *err);
void gd_selector_destroy(struct gd_selector *selector);
/* Whether it takes nodes away anywhere, and whether a term joined by ',' would. */
bool gd_selector_has_except(const struct gd_selector *selector);
bool gd_selector_ends_in_except(const struct gd_selector *selector);

/* Whether a term that selects is a name as it stands: of a node, or of a scope. */
bool gd_selector_has_name(const struct gd_selector *selector);

/* What the name of a node that it may come to select must contain, one piece for each term that
 * selects: "" where a term goes by anything but the name, or by a pattern without any letters.
 * is_name is false of regular expressions, too. The name of a node that is there stands for that
 * one alone; `weights`, which do not run, for nothing. */
typedef void (*gd_selector_part_fn)(void *ctx, const char *part, bool is_name);
void gd_selector_parts(const struct gd_selector *selector, struct gd_graph *graph,
                       gd_selector_part_fn fn, void *ctx);

/* Nodes selected, in node order, each once; *ret is malloc'd (NULL when *count is 0).
 * GD_ENOTFOUND: a term that names one node or scope has none. GD_EAMBIGUOUS. GD_ENOMEM. */
int gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                        gd_node_id **ret, size_t *count, struct gd_err *err);

/* As gd_selector_resolve does, of a node that is taken alone. */
bool gd_selector_matches(const struct gd_selector *selector, struct gd_graph *graph,
                         gd_node_id node);
/* Whether the node, which is new, is selected, or not, for what it is itself, and changes nothing
 * for those before it: no name or scope in the selector may mean it. `resolved`: something is known
 * to have been selected before, so that all that is named is there. */
bool gd_selector_takes_alone(const struct gd_selector *selector, struct gd_graph *graph,
                             gd_node_id node, bool resolved);

#endif
