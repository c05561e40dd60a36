// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by the sources of the pickle reader. */
#ifndef GD_DUMP_PICKLE_IMPL_H
#define GD_DUMP_PICKLE_IMPL_H

#include "base/arena.h"
#include "dump/torch/pickle.h"
#include "dump/torch/pickle_token.h"
#include "engine/hash_index.h"

/* ---- the values ------------------------------------------------------------------------------ */

struct gd_pickle {
    struct gd_arena arena;
    struct gd_pickle_value *root;
    uint32_t values; /* created so far */

    struct gd_pickle_global **global;
    uint32_t global_count;
    size_t global_cap;
    struct gd_hash_index globals;

    struct gd_pickle_value **persistent;
    uint32_t persistent_count;
    size_t persistent_cap;
};

struct pickle_machine {
    struct gd_pickle *pickle;
    struct pickle_input input;
    struct gd_err *err; /* never NULL */

    struct gd_pickle_value **stack;
    uint32_t depth;
    size_t stack_cap;
    uint32_t *mark; /* stack depth at each MARK */
    uint32_t marks;
    size_t mark_cap;

    uint64_t *memo_key; /* indexed by number in the table */
    struct gd_pickle_value **memo;
    uint32_t memo_count;
    size_t memo_cap;
    struct gd_hash_index memo_at;
    bool stopped;
};

/* A new, empty value; NULL: the error is set. */
struct gd_pickle_value *pickle_new(struct pickle_machine *machine, enum gd_pickle_kind kind);
void *pickle_alloc(struct pickle_machine *machine, size_t size); /* zeroed; NULL: as above */
/* The class or function with that name, without duplicates. */
struct gd_pickle_value *pickle_new_global(struct pickle_machine *machine, const char *module,
                                          size_t module_len, const char *name, size_t name_len);
struct gd_pickle_value *pickle_new_persistent(struct pickle_machine *machine,
                                              const struct gd_pickle_value *id);
/* Appends `count` values to a container (for DICT: pairs of two values). */
int pickle_extend(struct pickle_machine *machine, struct gd_pickle_value *container,
                  struct gd_pickle_value *const *value, uint32_t count);
int pickle_push(struct pickle_machine *machine, struct gd_pickle_value *value);

/* Parse the textual operands of older opcodes (pickle_text.c). */
struct gd_pickle_value *pickle_parse_int(struct pickle_machine *machine, const char *text,
                                         uint32_t len);
struct gd_pickle_value *pickle_parse_float(struct pickle_machine *machine, const char *text,
                                           uint32_t len);
/* Quoted text with Python's escapes, or (quoted false) with \uXXXX only. */
struct gd_pickle_value *pickle_parse_text(struct pickle_machine *machine, const char *text,
                                          uint32_t len, bool quoted);

/* ---- the opcodes (pickle_opcodes.c) ---------------------------------------------------------- */

/* Runs the program from its first opcode to STOP. */
int pickle_run(struct pickle_machine *machine);

#endif
