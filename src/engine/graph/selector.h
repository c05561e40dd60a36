// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Selectors: what a command applies to. One term or several joined by ',' or '|' (union). "except"
 * removes the terms after it from the selection, "with" adds to it again:
 *
 *   weights except *.bias with fc2.bias
 *
 * A term is one of
 *
 *   NAME             a node by its exact name, or by the end of one name after a '/'
 *   SCOPE, SCOPE/    all nodes below a scope, also by the end of one scope's path
 *   CLASS            all nodes below the modules of that class
 *   GLOB             * ? []; '*' crosses '/'; without a '/' also matched to the last component
 *   /REGEX/          POSIX extended, anywhere in the name; "\/" is a slash (a plain one, too,
 *                    where no blank, ',' or '|' follows it)
 *   weights gradients activations parameters all
 *   trainable frozen parameters that are trained, and that are not
 *   lora             what is in LoRA adapters: parameters, gradients and operators
 *   outside          what runs outside of modules, such as the loss; no parameters
 *   model eval       the forward pass of the training and its parameters; what runs in evaluation.
 *                    A node or scope that has exactly that name is meant instead
 *   activations:relu activations by their function, which is the type: a glob, case ignored
 *   type:ReLU        by type: a glob, case ignored
 *   at:FILE[:LINE]   by a line of the stack; the file by the end of its path
 *   "..."            a literal name, whatever it contains: a '/' in front, ',' or '|' in it
 *
 * Compiled nodes are selected by a whole NAME, by a SCOPE, or by a GLOB that begins with
 * "compiled/".
 */
#ifndef GD_ENGINE_SELECTOR_H
#define GD_ENGINE_SELECTOR_H

#include "engine/graph/graph.h"

struct gd_selector;

/* GD_EINVAL with err->offset at the fault. */
int gd_selector_parse(const char *text, struct gd_selector **ret, struct gd_err *err);
void gd_selector_destroy(struct gd_selector *selector);
/* How much of a module a SCOPE or CLASS means, without a slash at its end. */
enum gd_selector_extent {
    GD_EXTENT_WHOLE,
    GD_EXTENT_FIRST, /* the first operator of each module */
    GD_EXTENT_LAST,
};
void gd_selector_set_extent(struct gd_selector *selector, enum gd_selector_extent extent);

/* Whether the text is one of the words above, such as "weights". */
bool gd_selector_is_keyword(const char *text);

/* Whether it excludes nodes anywhere, and whether a term appended with ',' would. */
bool gd_selector_has_except(const struct gd_selector *selector);
bool gd_selector_ends_in_except(const struct gd_selector *selector);

/* Whether it selects all nodes, whatever it excludes. */
bool gd_selector_has_all(const struct gd_selector *selector);
/* Whether it selects by a plain name: of a node, or of a scope. */
bool gd_selector_has_name(const struct gd_selector *selector);

/* What the name of a node that it may select later must contain, one piece per selecting term: ""
 * if a term goes by anything but the name, or by a pattern without letters. is_name is false for
 * regular expressions, too. The name of an existing node means only that node; `weights`,
 * which do not run, for nothing. */
typedef void (*gd_selector_part_fn)(void *ctx, const char *part, bool is_name);
void gd_selector_parts(const struct gd_selector *selector, struct gd_graph *graph,
                       gd_selector_part_fn fn, void *ctx);

/* Nodes selected, in node order, each once; *ret is malloc'd (NULL when *count is 0).
 * GD_ENOTFOUND: a term that names one node or scope has none. GD_EAMBIGUOUS. GD_ENOMEM. */
int gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                        gd_node_id **ret, size_t *count, struct gd_err *err);

/* What gd_selector_resolve would say about one node. */
bool gd_selector_matches(const struct gd_selector *selector, struct gd_graph *graph,
                         gd_node_id node);
/* Whether a new node is selected or not by its own properties, without affecting earlier nodes: no
 * name or scope in the selector may mean it. `resolved`: the selector has selected something
 * before, so all names in it exist. */
bool gd_selector_takes_alone(const struct gd_selector *selector, struct gd_graph *graph,
                             gd_node_id node, bool resolved);

#endif
