// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads Python's pickles without running them: the program of opcodes becomes a tree of values.
 * Classes and functions remain names, and calls remain descriptions of the call; nothing is looked
 * up, created or executed, and there is no code here that could.
 *
 * Supports protocols 0 to 5. Opcodes that need registries or code of a running Python (INST, OBJ,
 * EXT1..4, out-of-band buffers) are refused.
 *
 * Values refer to each other as in the program: a value may occur in several places, or within
 * itself, so callers that walk them need a stack and limits. Everything is freed with the pickle.
 */
#ifndef GD_DUMP_PICKLE_H
#define GD_DUMP_PICKLE_H

#include "base/buf.h"
#include "dump/io/disk.h"

#define GD_PICKLE_MAX_PROGRAM ((uint64_t)512 << 20) /* bytes */
#define GD_PICKLE_MAX_STACK   1000000
#define GD_PICKLE_MAX_MEMO    8000000
#define GD_PICKLE_MAX_VALUES  16000000

enum gd_pickle_kind {
    GD_PICKLE_NONE = 0,
    GD_PICKLE_BOOL,
    GD_PICKLE_INT,
    /* an integer beyond 64 bits: its bytes, least significant first, or its digits */
    GD_PICKLE_BIG,
    GD_PICKLE_FLOAT,
    GD_PICKLE_TEXT, /* also Python 2's str */
    GD_PICKLE_BYTES,
    GD_PICKLE_LIST,
    GD_PICKLE_TUPLE,
    GD_PICKLE_SET,
    GD_PICKLE_DICT,       /* items: key, value, key, value, ... in program order */
    GD_PICKLE_GLOBAL,     /* the name of a class or function */
    GD_PICKLE_OBJECT,     /* the result of a call, not evaluated */
    GD_PICKLE_PERSISTENT, /* an object stored elsewhere, given by its id */
};

struct gd_pickle_value {
    uint8_t kind;
    bool visited;   /* for callers that walk values; initially false */
    uint32_t count; /* bytes of TEXT, BYTES, BIG; items of LIST, TUPLE, SET; pairs of DICT */
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text; /* count bytes, not NUL-terminated */
        struct gd_pickle_value **item;
        const struct gd_pickle_global *global;
        struct gd_pickle_object *object;
        const struct gd_pickle_value *id; /* PERSISTENT */
    };
};

struct gd_pickle_global {
    const char *module, *name; /* NUL-terminated, without embedded NUL */
    uint64_t at;               /* offset in the program of its first use */
    uint32_t times;            /* number of uses in the program */
};

struct gd_pickle_object {
    const struct gd_pickle_value *callee; /* GLOBAL, OBJECT or PERSISTENT */
    struct gd_pickle_value *args;         /* a TUPLE */
    struct gd_pickle_value *keywords;     /* NULL: none */
    struct gd_pickle_value *state;        /* set by BUILD; NULL: none */
    struct gd_pickle_value *list;         /* a LIST of appended items; NULL: none */
    struct gd_pickle_value *dict;         /* a DICT of items that were set; NULL: none */
};

struct gd_pickle;

/* Reads the program in a file from `at` on, or in memory. `what` precedes the byte in messages
 * ("model.pt: data.pkl"). *end (may be NULL) is the offset after STOP. At most 64 KiB of a file are
 * read beyond STOP; memory must outlive the pickle. GD_EPROTO: broken or refused; GD_ELIMIT:
 * exceeds a limit above, or needs memory of more than about 64 times the program; GD_EIO,
 * GD_ENOMEM. */
int gd_pickle_read_disk(struct gd_disk *disk, uint64_t at, uint64_t size, const char *what,
                        struct gd_pickle **ret, uint64_t *end, struct gd_err *err);
int gd_pickle_read_memory(const void *program, size_t size, const char *what,
                          struct gd_pickle **ret, uint64_t *end, struct gd_err *err);
void gd_pickle_free(struct gd_pickle *pickle);                    /* NULL is fine */
static inline void gd_cleanup_pickle(struct gd_pickle *const *at) /* for GD_CLEANUP */
{
    gd_pickle_free(*at);
}

struct gd_pickle_value *gd_pickle_root(const struct gd_pickle *pickle);
size_t gd_pickle_global_count(const struct gd_pickle *pickle);
/* The classes and functions that are named, without duplicates, in program order. */
const struct gd_pickle_global *gd_pickle_global_at(const struct gd_pickle *pickle, size_t index);
/* The objects stored elsewhere, in program order. */
size_t gd_pickle_persistent_count(const struct gd_pickle *pickle);
const struct gd_pickle_value *gd_pickle_persistent_at(const struct gd_pickle *pickle, size_t index);

/* ---- queries; NULL never matches ------------------------------------------------------------- */

bool gd_pickle_is_text(const struct gd_pickle_value *value, const char *text);
bool gd_pickle_is_global(const struct gd_pickle_value *value, const char *module, const char *name);
/* Whether the value is an object made by calling module.name. */
bool gd_pickle_is_call(const struct gd_pickle_value *value, const char *module, const char *name);
bool gd_pickle_get_int(const struct gd_pickle_value *value, int64_t *ret);
/* NULL: no such item. */
struct gd_pickle_value *gd_pickle_item(const struct gd_pickle_value *value, size_t index);
/* The value for a key of a dict, or of an object with items; the last one of duplicates. NULL:
 * none. */
struct gd_pickle_value *gd_pickle_get(const struct gd_pickle_value *value, const char *key);
/* The DICT that a value is or has: a dict, an object with items, or an empty one for OrderedDict().
 * NULL: none. */
const struct gd_pickle_value *gd_pickle_dict(const struct gd_pickle_value *value);

/* Prints the value as Python would, on one line: "3", "'Adam'", "(0.9, 0.999)"; about `max` bytes
 * at most, then "...". Others appear in angle brackets ("<torch.nn.Linear object>"). */
void gd_pickle_print(const struct gd_pickle_value *value, size_t max, struct gd_buf *out);

#endif
