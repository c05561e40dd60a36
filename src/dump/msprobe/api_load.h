// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The calls found in an API dump (ptdbg_ascend, msprobe, API info files): what was called in which
 * step, with which inputs and outputs, and from where. At the end each call becomes a node with
 * slots for its outputs and inputs, and everything is added to the catalog. Private to the readers
 * of these formats.
 */
#ifndef GD_DUMP_API_LOAD_H
#define GD_DUMP_API_LOAD_H

#include "base/arena.h"
#include "dump/format.h"
#include "dump/io/json.h"
#include "engine/hash_index.h"

#define API_MAX_SLOTS 4096 /* per call and direction */
#define API_MAX_NAME  4096

struct api_value {
    bool is_input;
    const char *label; /* "0", "0.1", "kwargs.mask"; "": a single value. Copied */
    int64_t step;
    struct gd_source *source; /* NULL: only statistics */
    enum gd_dtype dtype;
    const struct gd_shape *shape; /* NULL: unknown; these four are copied */
    const struct gd_stats *stats;
    const char *digest, *note;
    signed char needs_grad; /* see gd_catalog_value */
};

struct api_item;
struct api_label;

struct api_attr { /* what is known of a call, apart from its tensors */
    const char *name, *value;
    struct api_attr *next;
};

struct api_event {
    const char *kind, *text;
    int64_t step;
    struct api_event *next;
};

struct api_call {
    const char *name;   /* must be first: see gd_hash_index_find */
    const char *parent; /* the call or scope it ran in; NULL: none */
    const char *type;   /* NULL: derived from the name */
    size_t leaf;        /* if the name is PARENT.LEAF: the length of LEAF; otherwise 0 */
    enum gd_node_kind kind;
    struct api_item *values; /* newest first */
    struct api_label *labels[2];
    uint32_t label_count[2], plain[2]; /* outputs, inputs; slots whose names are numbers */
    const struct gd_frame *frames;     /* innermost first */
    uint32_t frame_count;
    struct api_attr *attrs; /* in file order */
    struct api_event *events;
    uint32_t next;  /* index plus 1 of the call that runs next; 0: none */
    uint32_t order; /* valid after loading */
};

struct api_load { /* {0} is empty */
    struct gd_dump *dump;
    struct gd_catalog *catalog;
    struct gd_arena arena;
    struct api_call *call;
    size_t count, cap;
    uint32_t first, last; /* indices plus 1 of the first call and of the last one met; 0: none */
    int64_t step;         /* set by api_step */
    struct gd_hash_index lookup;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    uint64_t done; /* values */
};

/* Begins a step: the calls that follow are given in the order in which they ran. */
void api_step(struct api_load *load, int64_t step);
/* Finds or creates the call of that name; a new one runs after the last one met. */
int api_call_get(struct api_load *load, const char *name, struct api_call **ret,
                 struct gd_err *err); /* valid until another call is created */
struct api_call *api_call_find(struct api_load *load, const char *name);
/* Takes over the reference to the source, also on failure. A second value for the same step and
 * place completes the first. */
int api_value_add(struct api_load *load, struct api_call *call, const struct api_value *value,
                  struct gd_err *err);
/* The first attribute of a name counts; the number is limited. Strings are copied. */
int api_attr_add(struct api_load *load, struct api_call *call, const char *name, const char *value,
                 struct gd_err *err);
/* At most one of a kind per step. The text is copied, the kind is not. */
int api_event_add(struct api_load *load, struct api_call *call, int64_t step, const char *kind,
                  const char *text, struct gd_err *err);
/* Copies a string for the life of the load. NULL: out of memory. */
const char *api_keep(struct api_load *load, const char *text);

/* Gives the call its frames, unless it has some: an array of strings "File PATH, line N, in
 * FUNCTION, \n CODE" or of arrays [PATH, LINE, FUNCTION, CODE]. NULL: nothing is done. */
int api_frames(struct api_load *load, struct api_call *call, const cJSON *array,
               struct gd_err *err);

/* Adds nodes, values and events to the catalog. */
int api_load_finish(struct api_load *load, struct gd_err *err);
void api_load_clear(struct api_load *load);

/* ---- api_element.c: arguments in dumps ------------------------------------------------------- */

/* Where a JSON element belongs: the argument or result it is, or is nested in. Its tensors become
 * values of the call; their files are in `folder` (NULL: none). */
struct api_place {
    bool is_input;
    const char *label; /* prefix of numbers and keys; "": none */
    int64_t step;
    const char *folder;
    /* MindSpore's extremes skip NaN: finite ones do not prove that there is none */
    bool nan_may_hide;
};
int api_elements(struct api_load *load, struct api_call *call, const cJSON *element,
                 const struct api_place *place, struct gd_err *err);

/* max, min, mean and norm as Python dumps write them; NULL: missing. */
struct api_figures {
    const cJSON *max, *min, *mean, *norm;
};
bool api_stats(const struct api_figures *figures, const struct gd_shape *shape, bool nan_may_hide,
               struct gd_stats *ret);
/* The same as numbers; `has` says which are known. */
struct api_numbers {
    double max, min, mean, norm;
    bool has_max, has_min, has_mean, has_norm;
};
bool api_stats_of(const struct api_numbers *numbers, const struct gd_shape *shape,
                  bool nan_may_hide, struct gd_stats *ret);
/* The note for counts that only prove that there are such elements; NULL: none. */
const char *api_stats_note(const struct gd_stats *stats);
bool api_shape(const cJSON *array, struct gd_shape *ret);
/* A file with one tensor, opened on demand. GD_ENOTFOUND: it does not exist. */
int api_source(const char *folder, const char *name, struct gd_source **ret, struct gd_err *err);

/* ---- api_file.c: files of JSON that may be cut short ----------------------------------------- */

/* Called for each member of the root object (member "") or of one of its members, as a tree.
 * Everything before a syntax error is delivered, then the error. A non-zero return ends it. */
typedef int (*api_member_fn)(void *ctx, const char *name, const cJSON *value, struct gd_err *err);
int api_members(const struct gd_file_text *text, const char *what, const char *member,
                api_member_fn fn, void *ctx, struct gd_err *err);
/* The step and rank given by the path's directories, and the directory above them. */
struct api_where {
    int64_t step;
    bool has_step, has_rank;
    int rank;
    char root[4096]; /* ends with "procN" if that stands for a rank */
    uint32_t above;  /* number of directories between file and root */
};
void api_where_of(const char *path, struct api_where *ret);

#endif
