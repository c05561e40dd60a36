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

#include "dump/listing.h"
#include "dump/source.h"
#include "engine/graph.h"
#include "engine/session.h"

#define GD_EVERY_STEP INT64_MIN

struct gd_catalog;
struct gd_dump; /* the catalogs of all ranks that were found in what was opened */

struct gd_catalog_value {
    gd_node_id node;
    uint32_t slot;
    int64_t step;
    struct gd_source *source;     /* NULL: only statistics were dumped; a reference is taken */
    const struct gd_stats *stats; /* as the dump has them; NULL none. Copied */
    unsigned known;               /* which of stats are in the dump: enum gd_known */
    enum gd_dtype dtype;          /* where there is no source, or it is known without opening it */
    const struct gd_shape *shape; /* the same; NULL not known */
    double time;                  /* of the dump of it, seconds since the epoch; 0 not known */
    const char *digest;           /* "md5:...", "crc32:..."; NULL none. Copied */
    const char *note;             /* worth a line; NULL none. Copied */
};
enum gd_known { /* figures that a dump of statistics may have or lack */
                GD_KNOWN_COUNT = 1 << 0,
                GD_KNOWN_MAX = 1 << 1,
                GD_KNOWN_MIN = 1 << 2,
                GD_KNOWN_MEAN = 1 << 3,
                GD_KNOWN_NAN = 1 << 4,
                GD_KNOWN_INF = 1 << 5,
                GD_KNOWN_ZERO = 1 << 6,
                GD_KNOWN_SIGNS = 1 << 7, /* positive and negative */
                GD_KNOWN_L2 = 1 << 8,    /* sum_sq */
};

/* ---- filling --------------------------------------------------------------------------------- */

/* The catalog of a rank, made when it is new. `where`: the directory, to tell two of a kind apart
 * (ranks of several roots). */
int gd_dump_catalog(struct gd_dump *dump, int rank, const char *where, struct gd_catalog **ret,
                    struct gd_err *err);
/* Nodes are added to it directly; it is committed at the end. */
struct gd_graph *gd_catalog_graph(struct gd_catalog *catalog);
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
/* Facts for `info target`: "MindSpore version" "2.4.0". */
int gd_catalog_add_fact(struct gd_catalog *catalog, const char *name, const char *value,
                        struct gd_err *err);
/* What was seen and left out, and why: for `info formats`. */
int gd_dump_left_out(struct gd_dump *dump, const char *path, const char *why, struct gd_err *err);
/* The framework, its version and the network, where files tell them. */
struct gd_peer *gd_catalog_peer(struct gd_catalog *catalog);

/* ---- reading --------------------------------------------------------------------------------- */

struct gd_catalog_step {
    int64_t step;
    size_t values; /* of this step alone */
};
const struct gd_catalog_step *gd_catalog_steps(const struct gd_catalog *catalog, size_t *count);
/* The value of a tensor in a step, else that of every step; NULL: none. The source and stats inside
 * live as long as the catalog. */
const struct gd_catalog_value *gd_catalog_find(const struct gd_catalog *catalog, gd_node_id node,
                                               uint32_t slot, int64_t step);
/* All of a step in execution order; fn's non-zero return ends the walk and is returned. */
int gd_catalog_each(const struct gd_catalog *catalog, int64_t step,
                    int (*fn)(void *ctx, const struct gd_catalog_value *value), void *ctx);
size_t gd_dump_count(const struct gd_dump *dump);
struct gd_catalog *gd_dump_at(const struct gd_dump *dump, size_t index);
int gd_catalog_rank(const struct gd_catalog *catalog);

/* ---- formats --------------------------------------------------------------------------------- */

struct gd_found; /* what a format's look found, in detect.h */
struct gd_finding {
    const struct gd_dump_format *format;
    uint32_t root;    /* entry of the listing under which it lies */
    const char *rule; /* by what it was recognised, one line */
    uint32_t files;   /* that belong to it, as far as is known */
};
struct gd_findings; /* detect.h */

struct gd_dump_format {
    const char *name; /* "mindspore-sync" */
    const char *what; /* "MindSpore synchronous dump (1.3 and later)" */
    /* Looks through the listing and tells all places where it is (gd_findings_add). */
    int (*find)(const struct gd_listing *listing, struct gd_findings *findings, struct gd_err *err);
    /* Fills catalogs with what lies under the root. A broken file is left out with a reason and
     * does not end it; an error ends it. go_on: see gd_listing_read. */
    int (*read)(const struct gd_listing *listing, const struct gd_finding *finding,
                struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                struct gd_err *err);
};
/* In the order of detection; ends with NULL. */
extern const struct gd_dump_format *const gd_dump_formats[];
extern const struct gd_dump_format gd_ms_sync_format, gd_ms_bin_format, gd_cann_format,
    gd_tf_ascend_format, gd_ptdbg_format, gd_msprobe_format, gd_api_info_format, gd_rdr_format,
    gd_ms_ir_format, gd_glog_format, gd_tensor_files_format, gd_recorder_format;

int gd_findings_add(struct gd_findings *findings, const struct gd_finding *finding,
                    struct gd_err *err);

#endif
