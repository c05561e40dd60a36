// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A catalog: what one rank of a training left on the disk: its graph, its steps, and for each step
 * which values of which tensors there are. The reader of a dump format fills catalogs; one target
 * (dump_target.c) serves all of them.
 *
 * A tensor is NODE:SLOT, as everywhere. Slots of a dumped node are its outputs first, then its
 * inputs as they were dumped (gd_node_desc.input_slots says how many; they print as NODE:in0). What
 * holds in every step (constants, a checkpoint) has step GD_EVERY_STEP.
 */
#ifndef GD_DUMP_CATALOG_H
#define GD_DUMP_CATALOG_H

#include "dump/io/listing.h"
#include "dump/io/source.h"
#include "engine/graph/graph.h"
#include "engine/session.h"

#define GD_EVERY_STEP INT64_MIN

struct gd_catalog;
struct gd_dump;         /* the catalogs of all ranks that were found in what was opened */
struct gd_findings;     /* detect.h */
struct gd_open_options; /* engine/debugger.h */

struct gd_catalog_value {
    gd_node_id node;
    uint32_t slot;
    int64_t step;
    struct gd_source *source;     /* NULL: only statistics were dumped; a reference is taken */
    const struct gd_stats *stats; /* as the dump has them (see stats.unknown); NULL none. Copied */
    enum gd_dtype dtype;          /* where there is no source, or it is known without opening it */
    const struct gd_shape *shape; /* the same; NULL not known */
    double time;                  /* of the dump of it, seconds since the epoch; 0 not known */
    const char *digest;           /* "md5:...", "crc32:..."; NULL none. Copied */
    const char *note;             /* worth a line; NULL none. Copied */
    signed char needs_grad;       /* requires_grad: 1 yes, -1 no, 0 not told */
};

/* ---- filling --------------------------------------------------------------------------------- */

/* The catalog of a rank, made when it is new. `where`: the directory, to tell two of a kind apart
 * (ranks of several roots). */
int gd_dump_catalog(struct gd_dump *dump, int rank, const char *where, struct gd_catalog **ret,
                    struct gd_err *err);
/* Nodes are added to it directly; gd_dump_finish commits it. */
struct gd_graph *gd_catalog_graph(struct gd_catalog *catalog);
/* Several values of a tensor in one step (a loop) are all kept: the last by time, then by order of
 * adding, is the one of the step. GD_ELIMIT: too many. */
int gd_catalog_add(struct gd_catalog *catalog, const struct gd_catalog_value *value,
                   struct gd_err *err);
/* Steps that ran, whether or not something was dumped of them. */
int gd_catalog_add_step(struct gd_catalog *catalog, int64_t step, struct gd_err *err);
/* Why a node of the graph has no values ("runs on the host", "_no_task"). */
int gd_catalog_not_dumped(struct gd_catalog *catalog, gd_node_id node, const char *why,
                          struct gd_err *err);
int gd_catalog_add_scalar(struct gd_catalog *catalog, int64_t step, const char *name, double value,
                          struct gd_err *err);
/* An overflow that the device reported, a line of a log of ERROR or worse: `info events`. */
int gd_catalog_add_event(struct gd_catalog *catalog, int64_t step, gd_node_id node,
                         const char *kind, const char *text, struct gd_err *err);
/* Facts for `info target`: "MindSpore version" "2.4.0". One that begins with "SUSPICIOUS: " or
 * "CORRUPT: " is told by `open`, too. Those beyond ten thousand are not kept. */
int gd_catalog_add_fact(struct gd_catalog *catalog, const char *name, const char *value,
                        struct gd_err *err);
/* Files that belong to a node by more than its name: `info formats` tells that, too. */
#define GD_FACT_JOINED "operators joined"
/* What it has is in its facts: it is not dropped though it has nothing else. */
void gd_catalog_keep(struct gd_catalog *catalog);
/* What was seen and left out, and why: for `info formats`. Thousands of a kind are counted and not
 * kept. */
int gd_dump_left_out(struct gd_dump *dump, const char *path, const char *why, struct gd_err *err);
/* The same for what a file could not: it does not end the reading, but memory that is short and the
 * user's Ctrl-C do. */
int gd_dump_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                      struct gd_err *err);
/* The framework, its version and the network, where files tell them. */
struct gd_peer *gd_catalog_peer(struct gd_catalog *catalog);

/* ---- reading: after gd_dump_finish ----------------------------------------------------------- */

struct gd_catalog_step {
    int64_t step;
    size_t values; /* of this step alone */
};
const struct gd_catalog_step *gd_catalog_steps(const struct gd_catalog *catalog, size_t *count);
/* The step before that the graph of a node ran: several graphs count their steps each for itself.
 * GD_EVERY_STEP: none. */
int64_t gd_catalog_step_before(const struct gd_catalog *catalog, gd_node_id node, int64_t step);
/* Whether something of a subgraph was dumped in a step. */
bool gd_catalog_has_graph(const struct gd_catalog *catalog, uint32_t subgraph, int64_t step);
/* How many steps of a subgraph there are, from *first to *last. */
size_t gd_catalog_graph_steps(const struct gd_catalog *catalog, uint32_t subgraph, int64_t *first,
                              int64_t *last);
/* The value of a tensor in a step, else that of every step; NULL: none. The source and stats inside
 * live as long as the dump. */
const struct gd_catalog_value *gd_catalog_find(const struct gd_catalog *catalog, gd_node_id node,
                                               uint32_t slot, int64_t step);
/* What an operator gave that dumped nothing of it itself: the input of one behind it that did.
 * NULL: none. The value's node and slot are those of that input. */
const struct gd_catalog_value *gd_catalog_find_given(const struct gd_catalog *catalog,
                                                     const struct gd_graph *graph, gd_node_id node,
                                                     uint32_t slot, int64_t step);
/* All of a step in execution order, those of every step for GD_EVERY_STEP; fn's non-zero return
 * ends the walk and is returned. */
int gd_catalog_each(const struct gd_catalog *catalog, int64_t step,
                    int (*fn)(void *ctx, const struct gd_catalog_value *value), void *ctx);
/* NULL: nothing is known. */
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
bool gd_catalog_fact_is_alarm(const struct gd_catalog_fact *fact); /* to be told by `open` */

size_t gd_dump_count(const struct gd_dump *dump);
struct gd_catalog *gd_dump_at(const struct gd_dump *dump, size_t index); /* by rank, then where */
int gd_catalog_rank(const struct gd_catalog *catalog);
const char *gd_catalog_where(const struct gd_catalog *catalog);
const struct gd_catalog_fact *gd_dump_left(const struct gd_dump *dump, size_t *count,
                                           uint64_t *more); /* path and why */

/* ---- the whole ------------------------------------------------------------------------------- */

/* max_bytes bounds each graph (0 none). */
int gd_dump_create(uint64_t max_bytes, struct gd_dump **ret, struct gd_err *err);
void gd_dump_destroy(struct gd_dump *dump);
/* Everything was added: graphs are committed, values sorted. Catalogs without a node, a step, an
 * event or a scalar are dropped, unless gd_catalog_keep was called. */
int gd_dump_finish(struct gd_dump *dump, struct gd_err *err);
/* The graph belongs to the caller from now on, and must live as long as the dump is read. */
struct gd_graph *gd_catalog_give_graph(struct gd_catalog *catalog);
/* What was looked through, and what was found: lives as long as the dump. */
void gd_dump_keep_findings(struct gd_dump *dump, struct gd_listing *listing,
                           struct gd_findings *findings);
/* How it was opened (key, dtype, format); never NULL. Borrowed while formats are read, gone after.
 */
const struct gd_open_options *gd_dump_options(const struct gd_dump *dump);
void gd_dump_set_options(struct gd_dump *dump, const struct gd_open_options *options);
const struct gd_listing *gd_dump_listing(const struct gd_dump *dump);
const struct gd_findings *gd_dump_findings(const struct gd_dump *dump);

/* ---- formats --------------------------------------------------------------------------------- */

struct gd_finding {
    const struct gd_dump_format *format;
    uint32_t root;    /* entry of the listing under which it lies */
    const char *rule; /* by what it was recognised, one line; copied */
    uint32_t files;   /* that belong to it, as far as is known */
};

struct gd_dump_format {
    const char *name; /* "mindspore-sync" */
    const char *what; /* "MindSpore synchronous dump (1.3 and later)" */
    /* What only the format and its functions know: formats of a kind have the same functions and
     * differ here. */
    const void *detail;
    /* Looks through the listing and tells all places where it is (gd_findings_add). */
    int (*find)(const struct gd_dump_format *format, const struct gd_listing *listing,
                struct gd_findings *findings, struct gd_err *err);
    /* Fills catalogs with what lies under the root (the format is the finding's). A broken file is
     * left out with a reason and does not end it; an error ends it. go_on: see gd_listing_read. */
    int (*read)(const struct gd_listing *listing, const struct gd_finding *finding,
                struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                struct gd_err *err);
};
/* In the order of detection; ends with NULL. */
extern const struct gd_dump_format *const gd_dump_formats[];
extern const struct gd_dump_format gd_ms_sync_format, gd_ms_bin_format, gd_cann_format,
    gd_tf_ascend_format, gd_overflow_format, gd_ptdbg_format, gd_msprobe_format, gd_api_info_format,
    gd_grad_probe_format, gd_monitor_format, gd_atb_table_format, gd_results_format, gd_rdr_format,
    gd_ms_ir_format, gd_glog_format, gd_tensor_files_format, gd_recorder_format;

int gd_findings_add(struct gd_findings *findings, const struct gd_finding *finding,
                    struct gd_err *err);

#endif
