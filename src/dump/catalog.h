// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A catalog: what one rank of a training run left on disk: its graph, its steps and, for each step,
 * which tensors have values. The reader of a dump format fills catalogs; one target (dump_target.c)
 * serves them all.
 *
 * A tensor is NODE:SLOT, as everywhere. The slots of a dumped node are its outputs, then its inputs
 * in dump order (gd_node_desc.input_slots says how many; they print as NODE:in0). Values that hold
 * in every step (constants, a checkpoint) have step GD_EVERY_STEP.
 */
#ifndef GD_DUMP_CATALOG_H
#define GD_DUMP_CATALOG_H

#include "dump/io/listing.h"
#include "dump/io/source.h"
#include "engine/graph/graph.h"
#include "engine/session.h"

#define GD_EVERY_STEP INT64_MIN

struct gd_catalog;
struct gd_dump;         /* the catalogs of all ranks found in what was opened */
struct gd_findings;     /* detect.h */
struct gd_open_options; /* engine/debugger.h */
struct gd_memory;       /* engine/memory/memory.h */

struct gd_catalog_value {
    gd_node_id node;
    uint32_t slot;
    int64_t step;
    struct gd_source *source;     /* NULL: only statistics were dumped. A reference is taken */
    const struct gd_stats *stats; /* as dumped (see stats.unknown); NULL: none. Copied */
    enum gd_dtype dtype;          /* when there is no source, or known without opening it */
    const struct gd_shape *shape; /* as dtype; NULL: unknown */
    double time;                  /* when it was dumped, in seconds since the epoch; 0: unknown */
    const char *digest;           /* "md5:...", "crc32:..."; NULL: none. Copied */
    const char *note;             /* one line for the user; NULL: none. Copied */
    signed char needs_grad;       /* requires_grad: 1 yes, -1 no, 0 unknown */
};

/* ---- filling --------------------------------------------------------------------------------- */

/* The catalog of a rank, created on first use. `where`: its directory, to distinguish equal
 * ranks of several roots. */
int gd_dump_catalog(struct gd_dump *dump, int rank, const char *where, struct gd_catalog **ret,
                    struct gd_err *err);
/* The same for what belongs to a dump next to it: the only catalog of the rank, if there is one. */
int gd_dump_catalog_beside(struct gd_dump *dump, int rank, const char *where,
                           struct gd_catalog **ret, struct gd_err *err);
/* Add nodes directly to this graph; gd_dump_finish commits it. */
struct gd_graph *gd_catalog_graph(struct gd_catalog *catalog);
/* Several values of one tensor in one step (a loop) are all kept; the latest by time, then by order
 * of adding, is the step's value. GD_ELIMIT: too many. */
int gd_catalog_add(struct gd_catalog *catalog, const struct gd_catalog_value *value,
                   struct gd_err *err);
/* Records a step that ran, even if nothing of it was dumped. */
int gd_catalog_add_step(struct gd_catalog *catalog, int64_t step, struct gd_err *err);
/* Why a node of the graph has no values ("runs on the host", "_no_task"). */
int gd_catalog_not_dumped(struct gd_catalog *catalog, gd_node_id node, const char *why,
                          struct gd_err *err);
/* In a catalog that is sorted already, call gd_catalog_sort_scalars afterwards. */
int gd_catalog_add_scalar(struct gd_catalog *catalog, int64_t step, const char *name, double value,
                          struct gd_err *err);
void gd_catalog_sort_scalars(struct gd_catalog *catalog);
void gd_catalog_remove_scalars(struct gd_catalog *catalog, const char *name);
/* For `info events`: an overflow that the device reported, a log line of level ERROR or above. */
int gd_catalog_add_event(struct gd_catalog *catalog, int64_t step, gd_node_id node,
                         const char *kind, const char *text, struct gd_err *err);
/* A fact for `info target`: "MindSpore version" "2.4.0". `open` also shows those that begin with
 * "SUSPICIOUS: " or "CORRUPT: ". At most ten thousand are kept. */
int gd_catalog_add_fact(struct gd_catalog *catalog, const char *name, const char *value,
                        struct gd_err *err);
/* Files matched to a node by more than its name; `info formats` shows this fact too. */
#define GD_FACT_JOINED "operators joined"
/* The path of a log, for `info log`. */
#define GD_FACT_LOG    "log"
/* The report of where its time went, created on first use. */
int gd_catalog_times(struct gd_catalog *catalog, struct gd_time_report **ret, struct gd_err *err);
/* When what ran, created on first use. */
int gd_catalog_timeline(struct gd_catalog *catalog, struct gd_timeline **ret, struct gd_err *err);
/* Keeps the catalog although it has nothing but facts. */
void gd_catalog_keep(struct gd_catalog *catalog);
/* The report of who held the memory, created on first use; keeps the catalog. */
int gd_catalog_memory(struct gd_catalog *catalog, struct gd_memory **ret, struct gd_err *err);
bool gd_catalog_has_times(const struct gd_catalog *catalog);
/* NULL: none */
const struct gd_memory *gd_catalog_has_memory(const struct gd_catalog *catalog);
/* Records what was seen but not read, and why, for `info formats`. Beyond a few thousand, only
 * counted. */
int gd_dump_left_out(struct gd_dump *dump, const char *path, const char *why, struct gd_err *err);
/* The same for a file that failed with an error. Returns the error only when reading must end: out
 * of memory, or interrupted by the user. */
int gd_dump_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                      struct gd_err *err);
/* Framework, version and network, as far as files say. */
struct gd_peer *gd_catalog_peer(struct gd_catalog *catalog);

/* ---- reading: after gd_dump_finish ----------------------------------------------------------- */

struct gd_catalog_step {
    int64_t step;
    size_t values; /* not counting GD_EVERY_STEP */
};
const struct gd_catalog_step *gd_catalog_steps(const struct gd_catalog *catalog, size_t *count);
/* The previous step in which the node's graph ran; each of several graphs counts its own steps.
 * GD_EVERY_STEP: none. */
int64_t gd_catalog_step_before(const struct gd_catalog *catalog, gd_node_id node, int64_t step);
/* Whether the step has a dumped value of the subgraph. */
bool gd_catalog_has_graph(const struct gd_catalog *catalog, uint32_t subgraph, int64_t step);
/* The number of steps of a subgraph, and the first and last of them. */
size_t gd_catalog_graph_steps(const struct gd_catalog *catalog, uint32_t subgraph, int64_t *first,
                              int64_t *last);
/* The value of a tensor in a step, otherwise its GD_EVERY_STEP value; NULL: none. Its source and
 * stats live as long as the dump. */
const struct gd_catalog_value *gd_catalog_find(const struct gd_catalog *catalog, gd_node_id node,
                                               uint32_t slot, int64_t step);
/* The output of an operator that was not dumped itself, taken from the dumped input of a consumer.
 * NULL: none. The value names that input's node and slot. */
const struct gd_catalog_value *gd_catalog_find_given(const struct gd_catalog *catalog,
                                                     const struct gd_graph *graph, gd_node_id node,
                                                     uint32_t slot, int64_t step);
/* Calls fn for all values of a step in execution order (GD_EVERY_STEP: those of every step). A
 * non-zero return of fn ends the walk and is returned. */
int gd_catalog_each(const struct gd_catalog *catalog, int64_t step,
                    int (*fn)(void *ctx, const struct gd_catalog_value *value), void *ctx);
/* NULL: unknown. */
const char *gd_catalog_why_not(const struct gd_catalog *catalog, gd_node_id node);
struct gd_catalog_scalar {
    int64_t step;
    const char *name;
    double value;
};
const struct gd_catalog_scalar *gd_catalog_scalars(const struct gd_catalog *catalog,
                                                   size_t *count); /* by step */
struct gd_catalog_event {
    int64_t step;
    gd_node_id node; /* GD_NO_NODE: none */
    const char *kind, *text;
};
const struct gd_catalog_event *gd_catalog_events(const struct gd_catalog *catalog,
                                                 size_t *count); /* by step */
struct gd_catalog_fact {
    const char *name, *value;
};
const struct gd_catalog_fact *gd_catalog_facts(const struct gd_catalog *catalog, size_t *count);
bool gd_catalog_fact_is_alarm(const struct gd_catalog_fact *fact); /* `open` shows it */

size_t gd_dump_count(const struct gd_dump *dump);
/* by rank, then by directory */
struct gd_catalog *gd_dump_at(const struct gd_dump *dump, size_t index);
int gd_catalog_rank(const struct gd_catalog *catalog);
const char *gd_catalog_where(const struct gd_catalog *catalog);
const struct gd_catalog_fact *gd_dump_left(const struct gd_dump *dump, size_t *count,
                                           uint64_t *more); /* pairs of path and reason */

/* ---- entry points ---------------------------------------------------------------------------- */

/* max_bytes limits each graph (0: no limit). */
int gd_dump_create(uint64_t max_bytes, struct gd_dump **ret, struct gd_err *err);
void gd_dump_destroy(struct gd_dump *dump);
/* Call when everything was added: commits graphs and sorts values. Drops catalogs without a node,
 * step, event or scalar, unless gd_catalog_keep was called. */
int gd_dump_finish(struct gd_dump *dump, struct gd_err *err);
/* Hands the graph to the caller, who must keep it as long as the dump is read. */
struct gd_graph *gd_catalog_give_graph(struct gd_catalog *catalog);
/* The same for its report; NULL: there are no times. */
struct gd_time_report *gd_catalog_give_times(struct gd_catalog *catalog);
struct gd_timeline *gd_catalog_give_timeline(struct gd_catalog *catalog);
/* Takes over the listing and the findings, which then live as long as the dump. */
void gd_dump_keep_findings(struct gd_dump *dump, struct gd_listing *listing,
                           struct gd_findings *findings);
/* The options it is opened with (key, dtype, format); never NULL. Valid only while formats are
 * read. */
const struct gd_open_options *gd_dump_options(const struct gd_dump *dump);
void gd_dump_set_options(struct gd_dump *dump, const struct gd_open_options *options);
const struct gd_listing *gd_dump_listing(const struct gd_dump *dump);
const struct gd_findings *gd_dump_findings(const struct gd_dump *dump);

#endif
