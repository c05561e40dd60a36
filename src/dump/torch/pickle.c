// SPDX-License-Identifier: GPL-3.0-or-later
/* Reading a pickle: its memory, values and globals. */
#include "dump/torch/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/torch/pickle_impl.h"

#define MEMORY_PER_BYTE 64
#define MEMORY_FIRST    ((uint64_t)1 << 20)
#define MEMORY_MAX      ((uint64_t)2 << 30)
#define FIRST_ITEMS     2
#define FIRST_STACK     256
#define MAX_NAME        4096

/* ---- memory ---------------------------------------------------------------------------------- */

void *pickle_alloc(struct pickle_machine *machine, size_t size)
{
    void *block = gd_arena_zalloc(&machine->pickle->arena, size);

    if (!block) {
        pickle_fail(&machine->input, machine->err, GD_ELIMIT,
                    "the values take more memory than the pickle's size allows");
    }
    return block;
}

struct gd_pickle_value *pickle_new(struct pickle_machine *machine, enum gd_pickle_kind kind)
{
    struct gd_pickle_value *value;

    if (machine->pickle->values >= GD_PICKLE_MAX_VALUES) {
        pickle_fail(&machine->input, machine->err, GD_ELIMIT, "more than %d values",
                    GD_PICKLE_MAX_VALUES);
        return NULL;
    }
    value = pickle_alloc(machine, sizeof(*value));
    if (value) {
        value->kind = (uint8_t)kind;
        machine->pickle->values++;
    }
    return value;
}

/* Free room after `count` consecutive items: the room is always a power of two. */
static uint64_t room_of(uint64_t count)
{
    uint64_t room = FIRST_ITEMS;

    if (!count) {
        return 0;
    }
    while (room < count) {
        room *= 2;
    }
    return room;
}

int pickle_extend(struct pickle_machine *machine, struct gd_pickle_value *container,
                  struct gd_pickle_value *const *value, uint32_t count)
{
    uint32_t unit = container->kind == GD_PICKLE_DICT ? 2 : 1;
    uint64_t have = (uint64_t)container->count * unit, add = (uint64_t)count * unit;

    if (!add) {
        return GD_OK;
    }
    if (have + add > UINT32_MAX) {
        return pickle_fail(&machine->input, machine->err, GD_ELIMIT,
                           "a container has more than %u values", UINT32_MAX);
    }
    if (have + add > room_of(have)) {
        struct gd_pickle_value **item =
            pickle_alloc(machine, (size_t)room_of(have + add) * sizeof(struct gd_pickle_value *));

        if (!item) {
            return GD_ELIMIT;
        }
        if (have) {
            memcpy(item, container->item, (size_t)have * sizeof(struct gd_pickle_value *));
        }
        container->item = item;
    }
    memcpy(container->item + have, value, (size_t)add * sizeof(struct gd_pickle_value *));
    container->count += count;
    return GD_OK;
}

/* ---- globals --------------------------------------------------------------------------------- */

static int add_global(struct pickle_machine *machine, const struct gd_pickle_global *global,
                      uint64_t hash)
{
    struct gd_pickle *pickle = machine->pickle;
    if (!gd_grow_list(&pickle->global, pickle->global_count, &pickle->global_cap,
                      sizeof(*pickle->global))) {
        return gd_fail_nomem(machine->err);
    }
    pickle->global[pickle->global_count] = pickle_alloc(machine, sizeof(*global));
    if (!pickle->global[pickle->global_count]) {
        return GD_ELIMIT;
    }
    *pickle->global[pickle->global_count] = *global;
    return gd_hash_index_add(&pickle->globals, hash, pickle->global_count++, machine->err);
}

static char *copy_name(struct pickle_machine *machine, const char *text, size_t len)
{
    char *copy;

    if (len > MAX_NAME || memchr(text, '\0', len)) {
        pickle_fail(&machine->input, machine->err, GD_EPROTO, "a class name that is %s",
                    len > MAX_NAME ? "longer than 4096 bytes" : "broken");
        return NULL;
    }
    copy = pickle_alloc(machine, len + 1);
    if (copy) {
        memcpy(copy, text, len);
    }
    return copy;
}

static uint64_t hash_of_name(struct gd_hash_index *lookup, const char *module, size_t module_len,
                             const char *name, size_t name_len)
{
    uint64_t parts[2] = {gd_hash_index_hash(lookup, module, module_len),
                         gd_hash_index_hash(lookup, name, name_len)};

    return gd_hash_index_hash(lookup, parts, sizeof(parts));
}

static bool same_text(const char *text, const char *bytes, size_t len)
{
    return strlen(text) == len && memcmp(text, bytes, len) == 0;
}

struct gd_pickle_value *pickle_new_global(struct pickle_machine *machine, const char *module,
                                          size_t module_len, const char *name, size_t name_len)
{
    struct gd_pickle *pickle = machine->pickle;
    uint64_t hash = hash_of_name(&pickle->globals, module, module_len, name, name_len);
    struct gd_pickle_value *value = pickle_new(machine, GD_PICKLE_GLOBAL);
    struct gd_pickle_global made = {.at = machine->input.opcode, .times = 1};
    uint32_t number;

    for (size_t at = 0; value && gd_hash_index_next(&pickle->globals, hash, &at, &number);) {
        struct gd_pickle_global *known = pickle->global[number];

        if (same_text(known->module, module, module_len) &&
            same_text(known->name, name, name_len)) {
            known->times++;
            value->global = known;
            return value;
        }
    }
    made.module = value ? copy_name(machine, module, module_len) : NULL;
    made.name = made.module ? copy_name(machine, name, name_len) : NULL;
    if (!made.name || add_global(machine, &made, hash) != GD_OK) {
        return NULL;
    }
    value->global = pickle->global[pickle->global_count - 1];
    return value;
}

/* ---- persistent ids -------------------------------------------------------------------------- */

struct gd_pickle_value *pickle_new_persistent(struct pickle_machine *machine,
                                              const struct gd_pickle_value *id)
{
    struct gd_pickle *pickle = machine->pickle;
    struct gd_pickle_value *value;

    if (!gd_grow_list(&pickle->persistent, pickle->persistent_count, &pickle->persistent_cap,
                      sizeof(value))) {
        gd_fail_nomem(machine->err);
        return NULL;
    }
    value = pickle_new(machine, GD_PICKLE_PERSISTENT);
    if (value) {
        value->id = id;
        pickle->persistent[pickle->persistent_count++] = value;
    }
    return value;
}

/* ---- the stack ------------------------------------------------------------------------------- */

int pickle_push(struct pickle_machine *machine, struct gd_pickle_value *value)
{
    if (!value) { /* a value could not be created */
        return machine->err->code;
    }
    if (machine->depth >= GD_PICKLE_MAX_STACK) {
        return pickle_fail(&machine->input, machine->err, GD_ELIMIT,
                           "more than %d values on the stack", GD_PICKLE_MAX_STACK);
    }
    if (!gd_grow_list(&machine->stack, machine->depth, &machine->stack_cap,
                      sizeof(*machine->stack))) {
        return gd_fail_nomem(machine->err);
    }
    machine->stack[machine->depth++] = value;
    return GD_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void end_machine(struct pickle_machine *machine)
{
    free(machine->stack);
    free(machine->mark);
    free(machine->memo_key);
    free(machine->memo);
    gd_hash_index_deinit(&machine->memo_at);
}

static int read_program(const struct pickle_input *input, uint64_t size, struct gd_pickle **ret,
                        uint64_t *end, struct gd_err *err)
{
    struct gd_err own = {.code = GD_OK};
    struct pickle_machine machine = {.input = *input, .err = err ? err : &own};
    uint64_t memory = MEMORY_FIRST + size * MEMORY_PER_BYTE;
    struct gd_pickle *pickle = calloc(1, sizeof(*pickle));
    int rc;

    if (!pickle) {
        return gd_fail(err, GD_ENOMEM, "%s: out of memory", input->what);
    }
    gd_arena_init(&pickle->arena, (size_t)(memory < MEMORY_MAX ? memory : MEMORY_MAX));
    machine.pickle = pickle;
    machine.input.arena = &pickle->arena;
    machine.stack_cap = FIRST_STACK;
    machine.stack = calloc(FIRST_STACK, sizeof(struct gd_pickle_value *));
    rc = machine.stack ? pickle_run(&machine)
                       : gd_fail(err, GD_ENOMEM, "%s: out of memory", input->what);
    end_machine(&machine);
    if (rc != GD_OK) {
        gd_pickle_free(pickle);
        return rc;
    }
    if (end) {
        *end = machine.input.offset;
    }
    *ret = pickle;
    return GD_OK;
}

static int too_long(const char *what, uint64_t size, struct gd_err *err)
{
    return gd_fail(err, GD_ELIMIT, "%s: a pickle of %llu bytes exceeds the limit of %llu", what,
                   (unsigned long long)size, (unsigned long long)GD_PICKLE_MAX_PROGRAM);
}

int gd_pickle_read_disk(struct gd_disk *disk, uint64_t at, uint64_t size, const char *what,
                        struct gd_pickle **ret, uint64_t *end, struct gd_err *err)
{
    static const unsigned char nothing;
    struct pickle_input input = {.at = &nothing, .end = &nothing, .offset = at, .left = size};

    input.disk = disk;
    input.what = what;
    input.left = size < GD_PICKLE_MAX_PROGRAM ? size : GD_PICKLE_MAX_PROGRAM;
    return read_program(&input, input.left, ret, end, err);
}

int gd_pickle_read_memory(const void *program, size_t size, const char *what,
                          struct gd_pickle **ret, uint64_t *end, struct gd_err *err)
{
    struct pickle_input input = {.at = program, .what = what};

    if (size > GD_PICKLE_MAX_PROGRAM) {
        return too_long(what, size, err);
    }
    input.end = input.at + size;
    return read_program(&input, size, ret, end, err);
}

void gd_pickle_free(struct gd_pickle *pickle)
{
    if (pickle) {
        gd_hash_index_deinit(&pickle->globals);
        free(pickle->global);
        free(pickle->persistent);
        gd_arena_deinit(&pickle->arena);
        free(pickle);
    }
}

struct gd_pickle_value *gd_pickle_root(const struct gd_pickle *pickle)
{
    return pickle->root;
}

size_t gd_pickle_global_count(const struct gd_pickle *pickle)
{
    return pickle->global_count;
}

const struct gd_pickle_global *gd_pickle_global_at(const struct gd_pickle *pickle, size_t index)
{
    return index < pickle->global_count ? pickle->global[index] : NULL;
}

size_t gd_pickle_persistent_count(const struct gd_pickle *pickle)
{
    return pickle->persistent_count;
}

const struct gd_pickle_value *gd_pickle_persistent_at(const struct gd_pickle *pickle, size_t index)
{
    return index < pickle->persistent_count ? pickle->persistent[index] : NULL;
}
