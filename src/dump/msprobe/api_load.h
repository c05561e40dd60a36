// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The calls of an API dump as they are found (ptdbg_ascend, msprobe, API info files): what was
 * called, with which inputs and outputs in which step, where. When all are there, each becomes a
 * node with slots for its outputs and inputs, and everything goes to the catalog. Private to the
 * readers of these formats.
 */
#ifndef GD_DUMP_API_LOAD_H
#define GD_DUMP_API_LOAD_H

#include "base/arena.h"
#include "dump/format.h"
#include "dump/hash_index.h"
#include "dump/io/json.h"

#define API_MAX_SLOTS 4096 /* of a call, each way */
#define API_MAX_NAME  4096

struct api_value {
    bool is_input;
    const char *label; /* "0", "0.1", "kwargs.mask"; "" a bare value. Copied */
    int64_t step;
    struct gd_source *source; /* NULL: figures alone */
    enum gd_dtype dtype;
    const struct gd_shape *shape; /* NULL not told; these four are copied */
    const struct gd_stats *stats;
    const char *digest, *note;
    signed char needs_grad; /* see gd_catalog_value */
};

struct api_item;
struct api_label;

struct api_attr { /* what is told of a call beside its tensors */
    const char *name, *value;
    struct api_attr *next;
};

struct api_event {
    const char *kind, *text;
    int64_t step;
    struct api_event *next;
};

struct api_call {
    const char *name;
    const char *parent; /* the call or the scope it ran in; NULL none */
    const char *type;   /* NULL: as the name tells */
    size_t leaf;        /* of a name that is PARENT.LEAF: how long LEAF is; 0: none */
    enum gd_node_kind kind;
    struct api_item *values; /* newest first */
    struct api_label *labels[2];
    uint32_t label_count[2], plain[2]; /* outputs, inputs; slots that have numbers for names */
    const struct gd_frame *frames;     /* innermost first */
    uint32_t frame_count;
    struct api_attr *attrs; /* in the order in which they were told */
    struct api_event *events;
    uint32_t next;  /* plus 1: the call that runs after it; 0 none */
    uint32_t order; /* once all are there */
};

struct api_load { /* zeroed is empty */
    struct gd_dump *dump;
    struct gd_catalog *catalog;
    struct gd_arena arena;
    struct api_call *call;
    size_t count, cap;
    uint32_t first, last; /* plus 1: the call that runs first; the one that was met last, 0 none */
    int64_t step;         /* of api_step */
    struct gd_hash_index lookup;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    uint64_t done; /* values */
};

/* The calls that follow are told in the order in which they ran in this step. */
void api_step(struct api_load *load, int64_t step);
/* The call of that name, made when it is the first: it runs after the one that was met before. */
int api_call_get(struct api_load *load, const char *name, struct api_call **ret,
                 struct gd_err *err); /* good until the next one is made */
struct api_call *api_call_find(struct api_load *load, const char *name);
/* Takes over the reference to the source, also on failure. Of two of one step and place, the second
 * fills what the first leaves open. */
int api_value_add(struct api_load *load, struct api_call *call, const struct api_value *value,
                  struct gd_err *err);
/* Of one name the first counts, and of very many the first ones. Texts are copied. */
int api_attr_add(struct api_load *load, struct api_call *call, const char *name, const char *value,
                 struct gd_err *err);
/* One of each kind in a step. The text is copied, the kind is not. */
int api_event_add(struct api_load *load, struct api_call *call, int64_t step, const char *kind,
                  const char *text, struct gd_err *err);
/* A copy that lives as long as the load. NULL: no memory. */
const char *api_keep(struct api_load *load, const char *text);

/* Frames out of an array of texts "File PATH, line N, in FUNCTION, \n CODE", or of arrays [PATH,
 * LINE, FUNCTION, CODE]. They live as long as the load. */
int api_frames(struct api_load *load, const cJSON *array, const struct gd_frame **ret,
               uint32_t *count, struct gd_err *err);

/* Nodes, values and events into the catalog. */
int api_load_finish(struct api_load *load, struct gd_err *err);
void api_load_clear(struct api_load *load);

/* ---- api_element.c: what dumps tell of an argument ------------------------------------------- */

/* The argument or result that an element of JSON is, or that are nested in it: tensors become
 * values of the call. Files lie in `folder` (NULL: there are none). */
struct api_place {
    bool is_input;
    const char *label; /* what stands in front of numbers and keys; "" nothing */
    int64_t step;
    const char *folder;
    bool nan_may_hide; /* MindSpore's extremes skip NaN: finite ones do not tell that there is none
                        */
};
int api_elements(struct api_load *load, uint32_t call, const cJSON *element,
                 const struct api_place *place, struct gd_err *err);

/* max, min, mean and the norm as Python's dumps tell them; NULL: not told. */
struct api_figures {
    const cJSON *max, *min, *mean, *norm;
};
bool api_stats(const struct api_figures *figures, const struct gd_shape *shape, bool nan_may_hide,
               struct gd_stats *ret);
/* The same of numbers; those that are not told are not `has`. */
struct api_numbers {
    double max, min, mean, norm;
    bool has_max, has_min, has_mean, has_norm;
};
bool api_stats_of(const struct api_numbers *numbers, const struct gd_shape *shape,
                  bool nan_may_hide, struct gd_stats *ret);
bool api_shape(const cJSON *array, struct gd_shape *ret);
/* A file with one tensor that is opened when somebody asks. GD_ENOTFOUND: it is not there. */
int api_source(const char *folder, const char *name, struct gd_source **ret, struct gd_err *err);

/* ---- api_file.c: files of JSON that may be cut short ----------------------------------------- */

struct api_text {
    char *data;
    size_t size;
};
int api_text_read(const char *path, uint64_t max, struct api_text *ret, struct gd_err *err);
/* Members of the object at the root (member "") or of one of its members, one by one, as trees.
 * What stands in front of an error is told; then the error. fn's non-zero return ends it. */
typedef int (*api_member_fn)(void *ctx, const char *name, const cJSON *value, struct gd_err *err);
int api_members(const struct api_text *text, const char *what, const char *member, api_member_fn fn,
                void *ctx, struct gd_err *err);
/* The step and the rank that directories of the path tell, and the directory above them. */
struct api_where {
    int64_t step;
    bool has_step, has_rank;
    int rank;
    char root[4096]; /* with "procN" behind it, where that stands for a rank */
    uint32_t above;  /* directories between the file's and the root */
};
void api_where_of(const char *path, struct api_where *ret);
/* The rank of MindSpore's "rank_N" in a path; 0: there is none. */
int api_rank_of(const char *path);
/* Skips the entry of the listing up so many directories. */
uint32_t api_up(const struct gd_listing *listing, uint32_t entry, uint32_t count);
/* One finding for each root. */
int api_found(struct gd_findings *findings, const struct gd_finding *finding, struct gd_err *err);

#endif
