// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Python's pickles, read and not run: a program of opcodes becomes a tree of values. Classes and
 * functions that it names stay names, a call stays what was called and with what; nothing is looked
 * up, made or executed, and there is no code here that could.
 *
 * Protocols 0 to 5. The opcodes that only make sense with registries or code of a running Python
 * (INST, OBJ, EXT1..4, out-of-band buffers) are refused.
 *
 * Values refer to each other as the program makes them: one may stand in several places, or inside
 * itself. Who walks them keeps a stack and a limit of its own. All is freed with the pickle.
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
    GD_PICKLE_BIG, /* an integer that does not fit 64 bits: the bytes, least first, or its digits */
    GD_PICKLE_FLOAT,
    GD_PICKLE_TEXT, /* also what Python 2 calls str */
    GD_PICKLE_BYTES,
    GD_PICKLE_LIST,
    GD_PICKLE_TUPLE,
    GD_PICKLE_SET,
    GD_PICKLE_DICT,       /* items: key, value, key, value, ... in the order they were set */
    GD_PICKLE_GLOBAL,     /* a class or function by name */
    GD_PICKLE_OBJECT,     /* what calling something with something would make */
    GD_PICKLE_PERSISTENT, /* what the writer kept elsewhere, by its id */
};

struct gd_pickle_value {
    uint8_t kind;
    bool visited;   /* for who walks: false at first */
    uint32_t count; /* bytes of TEXT, BYTES, BIG; items of LIST, TUPLE, SET; pairs of DICT */
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text; /* count bytes; what follows them is anything */
        struct gd_pickle_value **item;
        const struct gd_pickle_global *global;
        struct gd_pickle_object *object;
        const struct gd_pickle_value *id; /* PERSISTENT */
    };
};

struct gd_pickle_global {
    const char *module, *name; /* end in NUL, and have none inside */
    uint64_t at;               /* byte of the program that first names it */
    uint32_t times;            /* that the program names it */
};

struct gd_pickle_object {
    const struct gd_pickle_value *callee; /* GLOBAL, OBJECT or PERSISTENT */
    struct gd_pickle_value *args;         /* a TUPLE */
    struct gd_pickle_value *keywords;     /* NULL none */
    struct gd_pickle_value *state;        /* what BUILD gave it; NULL none */
    struct gd_pickle_value *list;         /* a LIST of what was appended; NULL none */
    struct gd_pickle_value *dict;         /* a DICT of what was set; NULL none */
};

struct gd_pickle;

/* The program that lies in a file from `at` on, or in memory; `what` stands before the byte in
 * messages ("model.pt: data.pkl"). *end (may be NULL) is the byte after the STOP, in the file or in
 * the memory. Of a file, no more than 64 KiB past the STOP are read; memory must outlive the
 * pickle. GD_EPROTO: broken or refused; GD_ELIMIT: one of the limits above, or more memory than
 * 64 times the program and a little; GD_EIO, GD_ENOMEM. */
int gd_pickle_read_disk(struct gd_disk *disk, uint64_t at, uint64_t size, const char *what,
                        struct gd_pickle **ret, uint64_t *end, struct gd_err *err);
int gd_pickle_read_memory(const void *program, size_t size, const char *what,
                          struct gd_pickle **ret, uint64_t *end, struct gd_err *err);
void gd_pickle_free(struct gd_pickle *pickle); /* NULL is fine */

struct gd_pickle_value *gd_pickle_root(const struct gd_pickle *pickle);
size_t gd_pickle_global_count(const struct gd_pickle *pickle);
/* Every class and function that is named, once each, in the order of the program. */
const struct gd_pickle_global *gd_pickle_global_at(const struct gd_pickle *pickle, size_t index);
/* What the writer kept elsewhere, in the order of the program. */
size_t gd_pickle_persistent_count(const struct gd_pickle *pickle);
const struct gd_pickle_value *gd_pickle_persistent_at(const struct gd_pickle *pickle, size_t index);

/* ---- looking at values; NULL is never a match ------------------------------------------------ */

bool gd_pickle_is_text(const struct gd_pickle_value *value, const char *text);
bool gd_pickle_is_global(const struct gd_pickle_value *value, const char *module, const char *name);
/* An object that is a call of that. */
bool gd_pickle_is_call(const struct gd_pickle_value *value, const char *module, const char *name);
bool gd_pickle_get_int(const struct gd_pickle_value *value, int64_t *ret);
/* Item `index` of a list, tuple or set; NULL none. */
struct gd_pickle_value *gd_pickle_item(const struct gd_pickle_value *value, size_t index);
/* The value under a key of a dict or of an object with items; the last of several. NULL none. */
struct gd_pickle_value *gd_pickle_get(const struct gd_pickle_value *value, const char *key);
/* The DICT that a value is or has: a dict, an object with items, OrderedDict() without any (an
 * empty one). NULL: it is none. */
const struct gd_pickle_value *gd_pickle_dict(const struct gd_pickle_value *value);

/* As Python would write it, on one line: "3", "'Adam'", "(0.9, 0.999)"; at most about `max` bytes,
 * then "...". What cannot be said so is told in angle brackets ("<torch.nn.Linear object>"). */
void gd_pickle_print(const struct gd_pickle_value *value, size_t max, struct gd_buf *out);

#endif
