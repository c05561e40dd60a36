// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_opdebug.h"

#include <inttypes.h>
#include <string.h>

#include "dump/io/little_endian.h"

#define MAGIC        0x5a5a5a5au
#define NEW_HEADER   24
#define INVALID_ID   65535
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- the fields ------------------------------------------------------------------------------ */

static const char *const old_fields[] = {"model_id",  "stream_id", "task_id",
                                         "task_type", "pc_start",  "para_base"};
static const char *const core_fields[] = {"model_id",   "stream_id", "task_id",  "task_type",
                                          "context_id", "thread_id", "pc_start", "para_base",
                                          "core_id",    "block_id",  "status"};
static const char *const sdma_fields[] = {"model_id",   "stream_id", "task_id",  "task_type",
                                          "context_id", "thread_id", "src_addr", "dst_addr",
                                          "channel_id", "status"};
static const char *const cpu_fields[] = {"model_id",   "stream_id", "task_id",   "task_type",
                                         "context_id", "cpu_id",    "thread_id", "status"};
static const struct {
    const char *name;
    const char *const *fields;
    int count;
} units[] = {
    {"AIC", core_fields, COUNT(core_fields)},
    {"AIV", core_fields, COUNT(core_fields)},
    {"AICPU", cpu_fields, COUNT(cpu_fields)},
    {"SDMA", sdma_fields, COUNT(sdma_fields)},
};

static bool is_address(const char *name)
{
    static const char *const addresses[] = {"pc_start", "para_base", "src_addr", "dst_addr",
                                            "kernel_code"};

    for (int i = 0; i < COUNT(addresses); i++) {
        if (strcmp(addresses[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_field(struct gd_cann_unit *unit, const char *name, const unsigned char *bytes,
                      int count)
{
    struct gd_cann_field *field = &unit->field[unit->field_count++];

    *field = (struct gd_cann_field){.name = name, .count = count, .hex = is_address(name)};
    for (int i = 0; i < count; i++) {
        field->value[i] = gd_little_endian(bytes + 8 * i, 8);
    }
}

/* -1: not given by the device. */
static int64_t id_of(const struct gd_cann_unit *unit, const char *name)
{
    for (int i = 0; i < unit->field_count; i++) {
        if (strcmp(unit->field[i].name, name) == 0) {
            uint64_t value = unit->field[i].value[0];

            return value >= INVALID_ID ? -1 : (int64_t)value;
        }
    }
    return -1;
}

static void finish_unit(struct gd_cann_unit *unit)
{
    unit->model = id_of(unit, "model_id");
    unit->stream = id_of(unit, "stream_id");
    unit->task = id_of(unit, "task_id");
    unit->context = id_of(unit, "context_id");
    unit->thread = id_of(unit, "thread_id");
    for (int i = 0; i < unit->field_count; i++) {
        for (int k = 0; strcmp(unit->field[i].name, "status") == 0 && k < unit->field[i].count;
             k++) {
            unit->hit = unit->hit || unit->field[i].value[k] != 0;
        }
    }
}

/* ---- the two layouts ------------------------------------------------------------------------- */

static struct gd_cann_unit *old_unit(struct gd_cann_opdebug *record, const char *name,
                                     const unsigned char *bytes)
{
    struct gd_cann_unit *unit = &record->unit[record->unit_count++];

    unit->name = name;
    for (int i = 0; i < COUNT(old_fields); i++) {
        add_field(unit, old_fields[i], bytes + 8 * i, 1);
    }
    return unit;
}

static void read_old(const unsigned char *bytes, struct gd_cann_opdebug *ret)
{
    struct gd_cann_unit *unit = old_unit(ret, "DHA Atomic Add", bytes);

    add_field(unit, "status", bytes + 512, 1);
    unit = old_unit(ret, "L2 Atomic Add", bytes + 128);
    add_field(unit, "status", bytes + 768, 1);
    unit = old_unit(ret, "AI Core", bytes + 256);
    add_field(unit, "kernel_code", bytes + 1024, 1);
    add_field(unit, "block_idx", bytes + 1032, 1);
    add_field(unit, "status", bytes + 1040, 1);
}

static bool read_new(const unsigned char *bytes, struct gd_cann_opdebug *ret)
{
    struct gd_cann_unit *unit = &ret->unit[0];

    ret->version = (uint32_t)gd_little_endian(bytes + 4, 4);
    ret->valid = (uint32_t)gd_little_endian(bytes + 8, 4);
    ret->acc_type = (uint32_t)gd_little_endian(bytes + 12, 4);
    ret->reserved = (uint32_t)gd_little_endian(bytes + 16, 4);
    ret->data_len = (uint32_t)gd_little_endian(bytes + 20, 4);
    if (ret->acc_type >= (uint32_t)COUNT(units)) {
        return false;
    }
    unit->name = units[ret->acc_type].name;
    for (int i = 0; i < units[ret->acc_type].count; i++) {
        const char *name = units[ret->acc_type].fields[i];
        bool four = ret->version == 1 && ret->acc_type <= 1 && strcmp(name, "status") == 0;

        add_field(unit, name, bytes + NEW_HEADER + 8 * i, four ? 4 : 1);
    }
    ret->unit_count = 1;
    return true;
}

bool gd_cann_opdebug_read(const unsigned char *bytes, size_t size, struct gd_cann_opdebug *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (size < GD_CANN_OPDEBUG_BYTES) {
        return false;
    }
    ret->magic = (uint32_t)gd_little_endian(bytes, 4);
    ret->is_new = ret->magic == MAGIC;
    if (!ret->is_new) {
        read_old(bytes, ret);
    } else if (!read_new(bytes, ret)) {
        return false;
    }
    for (int i = 0; i < ret->unit_count; i++) {
        finish_unit(&ret->unit[i]);
    }
    return true;
}

const struct gd_cann_unit *gd_cann_opdebug_hit(const struct gd_cann_opdebug *record)
{
    for (int i = record->unit_count; i-- > 0;) { /* AI Core is stored last but reported first */
        if (record->unit[i].hit) {
            return &record->unit[i];
        }
    }
    return NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void core_words(uint64_t status, struct gd_buf *out)
{
    static const struct {
        uint64_t bit;
        const char *words;
    } bits[] = {
        {0x8, "negation of the smallest signed integer"},
        {0x10, "integer overflow"},
        {0x20, "floating-point overflow"},
        {0x80, "negative number converted to unsigned"},
        {0x100, "overflow in the conversion to float16"},
        {0x400, "overflow in the accumulation of the cube unit"},
    };
    const char *comma = "";
    uint64_t rest = status;

    for (int i = 0; i < COUNT(bits); i++) {
        if (status & bits[i].bit) {
            gd_buf_printf(out, "%s%s", comma, bits[i].words);
            comma = ", ";
            rest &= ~bits[i].bit;
        }
    }
    if (rest) {
        gd_buf_printf(out, "%sunknown bits 0x%" PRIx64, comma, rest);
    }
}

static const char *atomic_words(unsigned code)
{
    static const char *const words[] = {"overflow", "underflow", "the source is NaN",
                                        "the destination is NaN", "both are NaN"};

    return code < (unsigned)COUNT(words) ? words[code] : "unknown status";
}

static uint64_t status_of(const struct gd_cann_unit *unit)
{
    const struct gd_cann_field *last = &unit->field[unit->field_count - 1];
    uint64_t status = 0;

    for (int i = 0; i < last->count; i++) {
        status |= last->value[i];
    }
    return status;
}

void gd_cann_opdebug_text(const struct gd_cann_opdebug *record, struct gd_buf *out)
{
    const char *separator = "";

    for (int i = record->unit_count; i-- > 0;) {
        const struct gd_cann_unit *unit = &record->unit[i];
        uint64_t status = status_of(unit);

        if (!unit->hit) {
            continue;
        }
        gd_buf_printf(out, "%s%s: ", separator, unit->name);
        if (strcmp(unit->name, "DHA Atomic Add") == 0) {
            gd_buf_puts(out, atomic_words((unsigned)(status >> 8 & 0xff) - 9));
        } else if (strcmp(unit->name, "L2 Atomic Add") == 0) {
            gd_buf_puts(out, atomic_words((unsigned)(status >> 16 & 7) - 1));
        } else if (strcmp(unit->name, "AICPU") == 0 || strcmp(unit->name, "SDMA") == 0) {
            gd_buf_puts(out, "overflow");
        } else {
            core_words(status, out);
        }
        gd_buf_printf(out, " (status 0x%" PRIx64 ")", status);
        separator = "; ";
    }
    if (separator[0] == '\0') {
        gd_buf_puts(out, "no unit reported an overflow");
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_fields(const struct gd_cann_unit *unit, const char *indent, struct gd_buf *out)
{
    gd_buf_puts(out, "{");
    for (int i = 0; i < unit->field_count; i++) {
        const struct gd_cann_field *field = &unit->field[i];

        gd_buf_printf(out, "%s\n%s    \"%s\": ", i ? "," : "", indent, field->name);
        if (field->hex) {
            gd_buf_printf(out, "\"0x%" PRIx64 "\"", field->value[0]);
        } else if (field->count == 1) {
            gd_buf_printf(out, "%" PRIu64, field->value[0]);
        } else {
            gd_buf_puts(out, "[");
            for (int k = 0; k < field->count; k++) {
                gd_buf_printf(out, "%s\n%s        %" PRIu64, k ? "," : "", indent, field->value[k]);
            }
            gd_buf_printf(out, "\n%s    ]", indent);
        }
    }
    gd_buf_printf(out, "\n%s}", indent);
}

void gd_cann_opdebug_json(const struct gd_cann_opdebug *record, struct gd_buf *out)
{
    if (!record->is_new) {
        gd_buf_puts(out, "{");
        for (int i = 0; i < record->unit_count; i++) {
            gd_buf_printf(out, "%s\n    \"%s\": ", i ? "," : "", record->unit[i].name);
            json_fields(&record->unit[i], "    ", out);
        }
        gd_buf_puts(out, "\n}");
        return;
    }
    gd_buf_printf(out,
                  "{\n    \"magic\": \"0x%x\",\n    \"version\": %u,\n    \"acc_list\": {\n"
                  "        \"valid\": %u,\n        \"acc_type\": \"%s\",\n        \"rsv\": %u,\n"
                  "        \"data_len\": %u,\n        \"data\": ",
                  record->magic, record->version, record->valid, record->unit[0].name,
                  record->reserved, record->data_len);
    json_fields(&record->unit[0], "        ", out);
    gd_buf_puts(out, "\n    }\n}");
}
