// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's checkpoints. A large parameter consists of consecutive records, which are joined; of
 * other records with the same name the last one counts, as in MindSpore. Opening does not read
 * contents, except strings; the checksum at the end is checked if the file is small.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/io/little_endian.h"
#include "dump/mindspore/ms_ckpt_record.h"
#include "engine/hash_index.h"
#include "engine/utf8.h"

#define SUM_BYTES   17 /* "crc_num" and ten bytes, most significant first */
#define SUM_CHECKED ((uint64_t)64 << 20)
#define MAX_TEXT    ((uint64_t)4096) /* bytes of a string that are shown, four per character */
#define MAX_ENTRIES 1000000

struct chunks { /* of one tensor */
    struct ms_tensor first;
    struct gd_bytes **part;
    size_t count, cap;
    uint64_t size;
};

struct parameter { /* a complete one */
    char *name;
    uint64_t at; /* offset of its first record */
    struct gd_source *source;
    char *text, *problem;
};

struct ckpt {
    struct gd_archive *archive;
    struct gd_disk *disk;
    const struct gd_archive_options *options;
    struct ms_reader reader;
    struct ms_record record;
    bool is_print; /* a print file: strings and tensors without names */

    char *name; /* of the parameter being joined; NULL: none */
    uint64_t begin;
    bool is_map, has_odd_chunk;
    struct chunks chunks[MS_MAP_TENSORS]; /* a tensor uses only the first */

    struct parameter *parameter;
    uint32_t count;
    size_t cap;
    struct gd_hash_index by_name;
};

/* ---- recognising ----------------------------------------------------------------------------- */

/* The name of the cipher; NULL: not encrypted. */
static const char *cipher_of(const unsigned char *start, size_t size)
{
    switch (size >= 4 ? gd_little_endian(start, 4) : 0) {
    case 0x7f3a5ed8: return "AES-GCM";
    case 0x7f3a5ed9: return "AES-CBC";
    case 0x7f3a5eda: return "SM4-CBC";
    default: return NULL;
    }
}

static bool name_ends_with(struct gd_disk *disk, const char *end)
{
    return gd_ends_with(gd_disk_path(disk), end);
}

static bool is_strategy(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    return size > 0 && start[0] == 0x08 && name_ends_with(disk, ".ckpt");
}

static bool is_type(const struct ms_tensor *tensor)
{
    return strcmp(tensor->type, "str") == 0 || strcmp(tensor->type, "random_op") == 0 ||
           gd_stored_from_name(tensor->type);
}

/* If the first record fits both kinds of files, the next one decides. */
static bool looks_like_print(const struct ms_record *record)
{
    static const char *const begins[] = {"_TS_SAVE_NAME:", "Tensor(shape="};

    if (record->has_tensor && !record->has_tag) {
        return is_type(&record->tensor);
    }
    for (size_t i = 0; i < 2; i++) {
        if (record->has_tag && !record->has_tensor && !record->has_map &&
            strncmp(record->tag, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool ckpt_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    struct ms_reader *reader;
    struct ms_record *record;
    bool cut, is = false;

    if (cipher_of(start, size) || is_strategy(start, size, disk)) {
        return true;
    }
    if (size < 4 || start[0] != 0x0a) {
        return false;
    }
    reader = malloc(sizeof(*reader));
    record = malloc(sizeof(*record));
    if (reader && record) {
        ms_reader_init(reader, disk);
        if (ms_read_record(reader, 0, record, &cut, NULL) == GD_OK) {
            is = looks_like_print(record) ||
                 (record->has_tag && record->has_tensor && is_type(&record->tensor)) ||
                 (record->has_tag && record->has_map && record->map_count > 0);
        } else {
            is = cut && name_ends_with(disk, ".ckpt");
        }
    }
    free(reader);
    free(record);
    return is;
}

static uint32_t find_parameter(const struct ckpt *ckpt, const char *name)
{
    return gd_hash_index_find(&ckpt->by_name, name, ckpt->parameter, sizeof(*ckpt->parameter));
}

static int make_room(struct ckpt *ckpt, struct gd_err *err)
{
    if (ckpt->count == MAX_ENTRIES) {
        return gd_fail(err, GD_ELIMIT, "%.300s has more than %d parameters",
                       gd_disk_path(ckpt->disk), MAX_ENTRIES);
    }
    if (!gd_grow_list(&ckpt->parameter, ckpt->count, &ckpt->cap, sizeof(*ckpt->parameter))) {
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

static void free_parameter(struct parameter *parameter)
{
    gd_source_unref(parameter->source);
    free(parameter->name);
    free(parameter->text);
    free(parameter->problem);
}

/* Takes over the contents of `made`, also on failure. Replaces a parameter with the same name. */
static int add_parameter(struct ckpt *ckpt, struct parameter *made, const char *name,
                         struct gd_err *err)
{
    uint32_t known = find_parameter(ckpt, name);
    int rc;

    made->at = ckpt->begin;
    made->name = strdup(name);
    rc = made->name ? make_room(ckpt, err) : gd_fail_nomem(err);
    if (rc != GD_OK) {
        free_parameter(made);
        return rc;
    }
    if (known != UINT32_MAX) {
        gd_archive_add_note(
            ckpt->archive,
            "%.200s occurs twice, at bytes %llu and %llu: the later one is used, as in MindSpore",
            name, (unsigned long long)ckpt->parameter[known].at, (unsigned long long)made->at);
        free_parameter(&ckpt->parameter[known]);
        ckpt->parameter[known] = *made;
        return GD_OK;
    }
    ckpt->parameter[ckpt->count++] = *made;
    return gd_hash_index_add_name(&ckpt->by_name, name, ckpt->count - 1, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

static char *problem_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *problem_text(const char *format, ...)
{
    char text[GD_ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return strdup(text);
}

static void put_letter(struct gd_buf *out, uint32_t code)
{
    if (code < 0x20 || code == 0x7f || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        gd_buf_printf(out, "\\x%02x", code);
    } else if (code == '\'' || code == '\\') {
        gd_buf_printf(out, "\\%c", (char)code);
    } else {
        char bytes[4];

        gd_buf_add(out, bytes, gd_utf8_encode(code, bytes));
    }
}

/* A string: four bytes per character. */
static int make_text(const struct chunks *chunks, struct gd_bytes *bytes, struct parameter *made,
                     struct gd_err *err)
{
    uint64_t size = chunks->size < MAX_TEXT ? chunks->size : MAX_TEXT;
    unsigned char letters[MAX_TEXT];
    struct gd_buf out = GD_BUF_INIT(SIZE_MAX);
    int rc = gd_bytes_read(bytes, 0, letters, (size_t)size, err);

    gd_buf_putc(&out, '\'');
    for (uint64_t i = 0; rc == GD_OK && i + 4 <= size; i += 4) {
        put_letter(&out, (uint32_t)gd_little_endian(letters + i, 4));
    }
    gd_buf_puts(&out, chunks->size > size ? "'..." : "'");
    made->text = gd_buf_take(&out);
    return rc != GD_OK ? rc : made->text ? GD_OK : gd_fail_nomem(err);
}

/* Derives type and shape, as far as the size of the content determines them. */
static void settle_layout(const struct chunks *chunks, struct gd_source_desc *desc)
{
    uint64_t bits = gd_stored_bits(desc->stored);
    int64_t count;

    desc->shape = chunks->first.shape;
    count = gd_shape_count(&desc->shape);
    /* Old files give a scalar the dimension 0. */
    if (desc->shape.rank == 1 && desc->shape.dim[0] == 0 && chunks->size * 8 == bits) {
        desc->shape.rank = 0;
    }
    if (desc->stored == GD_STORED_INT4 && count > 0 && (uint64_t)count == chunks->size) {
        desc->stored = GD_STORED_INT8;
        desc->note = "Int4, two values per byte, is shown as bytes";
    }
    if (strcmp(chunks->first.type, "random_op") == 0) {
        desc->stored = GD_STORED_OPAQUE;
        desc->shape = (struct gd_shape){.rank = 1, .dim = {(int64_t)chunks->size}};
    }
}

static int make_tensor(const struct ckpt *ckpt, const struct chunks *chunks, struct gd_bytes *bytes,
                       struct parameter *made, struct gd_err *err)
{
    struct gd_source_desc desc = {.bytes = bytes,
                                  .stored = gd_stored_from_name(chunks->first.type),
                                  .swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    char shape[128];
    struct gd_err why;
    uint64_t bits;
    int64_t count;
    int rc;

    settle_layout(chunks, &desc);
    count = gd_shape_count(&desc.shape);
    if (ckpt->has_odd_chunk) {
        made->problem = problem_text("its parts differ in type or shape");
    } else if (!desc.stored) {
        made->problem = problem_text("unknown type %s", chunks->first.type);
    } else if (count < 0 ||
               __builtin_mul_overflow((uint64_t)count, gd_stored_bits(desc.stored), &bits) ||
               (bits + 7) / 8 != chunks->size) {
        made->problem = problem_text(
            "it has %llu bytes, which does not match %s of %s", (unsigned long long)chunks->size,
            gd_shape_text(&desc.shape, shape, sizeof(shape)), chunks->first.type);
    } else {
        rc = gd_source_create(&desc, &made->source, &why);
        if (rc != GD_OK) {
            made->problem = strdup(why.text);
        }
    }
    return made->source || made->problem ? GD_OK : gd_fail_nomem(err);
}

/* ---- joining --------------------------------------------------------------------------------- */

static void drop_chunks(struct chunks *chunks)
{
    for (size_t i = 0; i < chunks->count; i++) {
        gd_bytes_unref(chunks->part[i]);
    }
    free(chunks->part);
    *chunks = (struct chunks){.count = 0};
}

static int end_chunks(struct ckpt *ckpt, struct chunks *chunks, const char *name,
                      struct gd_err *err)
{
    struct parameter made = {.at = ckpt->begin};
    struct gd_bytes *bytes = NULL;
    int rc = gd_bytes_of_row(chunks->part, chunks->count, &bytes, err);

    if (rc == GD_OK) {
        rc = strcmp(chunks->first.type, "str") == 0 ? make_text(chunks, bytes, &made, err)
                                                    : make_tensor(ckpt, chunks, bytes, &made, err);
    }
    gd_bytes_unref(bytes);
    drop_chunks(chunks);
    if (rc != GD_OK) {
        free(made.text);
        return rc;
    }
    return add_parameter(ckpt, &made, name, err);
}

/* All records of the parameter have been read. */
static int end_parameter(struct ckpt *ckpt, struct gd_err *err)
{
    static const char *const parts[MS_MAP_TENSORS] = {"keys", "values", "status"};
    char name[MS_MAX_TAG + 16];
    int rc = GD_OK;

    for (int i = 0; ckpt->name && rc == GD_OK && i < MS_MAP_TENSORS; i++) {
        if (!ckpt->chunks[i].count) {
            continue;
        }
        snprintf(name, sizeof(name), "%s%s%s", ckpt->name, ckpt->is_map ? "." : "",
                 ckpt->is_map ? parts[i] : "");
        rc = end_chunks(ckpt, &ckpt->chunks[i], name, err);
    }
    for (int i = 0; i < MS_MAP_TENSORS; i++) {
        drop_chunks(&ckpt->chunks[i]);
    }
    free(ckpt->name);
    ckpt->name = NULL;
    ckpt->has_odd_chunk = false;
    return rc;
}

static int add_chunk(struct ckpt *ckpt, struct chunks *chunks, const struct ms_tensor *tensor,
                     struct gd_err *err)
{
    int64_t *rows = &chunks->first.shape.dim[0];
    int rc;

    if (chunks->count == chunks->cap) {
        size_t cap = chunks->cap ? chunks->cap * 2 : 1; /* nearly all tensors have one */
        struct gd_bytes **grown = reallocarray(chunks->part, cap, sizeof(*grown));

        if (!grown) {
            return gd_fail_nomem(err);
        }
        chunks->part = grown;
        chunks->cap = cap;
    }
    if (!chunks->count) {
        chunks->first = *tensor;
    } else if (ckpt->is_map && chunks->first.shape.rank && tensor->shape.rank) {
        ckpt->has_odd_chunk |= __builtin_add_overflow(*rows, tensor->shape.dim[0], rows);
    } else {
        ckpt->has_odd_chunk |= !gd_shape_equal(&chunks->first.shape, &tensor->shape);
    }
    ckpt->has_odd_chunk |= strcmp(chunks->first.type, tensor->type) != 0;
    rc = gd_bytes_of_disk(ckpt->disk, tensor->at, tensor->size, &chunks->part[chunks->count], err);
    if (rc == GD_OK) {
        chunks->size += tensor->size; /* cannot overflow: at most the size of the file */
        chunks->count++;
    }
    return rc;
}

static int fail_broken(const struct ckpt *ckpt, const char *why, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.300s: byte %llu: %s", gd_disk_path(ckpt->disk),
                   (unsigned long long)ckpt->record.begin, why);
}

static int take_record(struct ckpt *ckpt, struct gd_err *err)
{
    const struct ms_record *record = &ckpt->record;
    int rc = GD_OK;

    if (!record->has_tag || (!record->has_tensor && !record->has_map)) {
        return fail_broken(
            ckpt, record->has_tag ? "a record without a value" : "a record without a name", err);
    }
    if (strlen(record->tag) != record->tag_len || !record->tag_len) {
        return fail_broken(ckpt, "a name that is empty, longer than 4096 bytes, or contains a NUL",
                           err);
    }
    if (!ckpt->name || strcmp(ckpt->name, record->tag) != 0 || ckpt->is_map != record->has_map) {
        rc = end_parameter(ckpt, err);
        ckpt->name = rc != GD_OK ? NULL : strdup(record->tag);
        if (rc == GD_OK && !ckpt->name) {
            rc = gd_fail_nomem(err);
        }
        ckpt->begin = record->begin;
        ckpt->is_map = record->has_map;
    }
    if (rc == GD_OK && record->has_tensor) {
        return add_chunk(ckpt, &ckpt->chunks[0], &record->tensor, err);
    }
    for (int i = 0; rc == GD_OK && i < record->map_count; i++) {
        rc = add_chunk(ckpt, &ckpt->chunks[i], &record->map[i], err);
    }
    return rc;
}

/* ---- print files ----------------------------------------------------------------------------- */

/* A tensor is named by the preceding string, or by its number. */
static int take_print(struct ckpt *ckpt, struct gd_err *err)
{
    static const char mark[] = "_TS_SAVE_NAME:";
    const struct ms_record *record = &ckpt->record;
    struct parameter made = {.at = record->begin};
    char name[MS_MAX_TAG + 16];
    int rc = GD_OK;

    if (record->has_map || record->has_tag == record->has_tensor) {
        return fail_broken(ckpt, "a record of a print file that is neither a string nor a tensor",
                           err);
    }
    ckpt->begin = record->begin;
    snprintf(name, sizeof(name), "print[%u]", ckpt->count);
    if (record->has_tensor) {
        if (ckpt->name) {
            snprintf(name, sizeof(name),
                     find_parameter(ckpt, ckpt->name) != UINT32_MAX ? "%s#%u" : "%s", ckpt->name,
                     ckpt->count);
        }
        free(ckpt->name);
        ckpt->name = NULL;
        rc = add_chunk(ckpt, &ckpt->chunks[0], &record->tensor, err);
        return rc != GD_OK ? rc : end_chunks(ckpt, &ckpt->chunks[0], name, err);
    }
    free(ckpt->name);
    ckpt->name = NULL;
    if (strncmp(record->tag, mark, strlen(mark)) == 0) {
        ckpt->name = strdup(record->tag + strlen(mark));
        return ckpt->name ? GD_OK : gd_fail_nomem(err);
    }
    made.text = strdup(record->tag);
    return made.text ? add_parameter(ckpt, &made, name, err) : gd_fail_nomem(err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int check_sum(struct ckpt *ckpt, const unsigned char *sum, struct gd_err *err)
{
    uint64_t size = gd_disk_size(ckpt->disk) - SUM_BYTES, expected = 0;
    unsigned char *piece;
    uLong actual = crc32(0, NULL, 0);
    int rc = GD_OK;

    if (size > SUM_CHECKED) {
        gd_archive_add_note(
            ckpt->archive,
            "the checksum at the end was not checked: the file is larger than 64 MiB");
        return GD_OK;
    }
    for (int i = 7; i < SUM_BYTES; i++) {
        expected = expected << 8 | sum[i];
    }
    piece = malloc((size_t)size + 1);
    if (!piece) {
        return gd_fail_nomem(err);
    }
    rc = gd_disk_read(ckpt->disk, 0, piece, (size_t)size, err);
    if (rc == GD_OK && crc32(actual, piece, (uInt)size) != expected) {
        gd_archive_add_note(
            ckpt->archive,
            "CORRUPT: the file's CRC-32 does not match the one at its end; values may be wrong");
    }
    free(piece);
    return rc;
}

/* Whether the file ends with a checksum that begins at `at`. */
static int is_sum(struct ckpt *ckpt, uint64_t at, bool *ret, struct gd_err *err)
{
    unsigned char sum[SUM_BYTES];
    int rc;

    *ret = false;
    if (gd_disk_size(ckpt->disk) - at != SUM_BYTES) {
        return GD_OK;
    }
    rc = gd_disk_read(ckpt->disk, at, sum, SUM_BYTES, err);
    if (rc == GD_OK && memcmp(sum, "crc_num", 7) == 0) {
        *ret = true;
        rc = check_sum(ckpt, sum, err);
    }
    return rc;
}

static int read_records(struct ckpt *ckpt, struct gd_err *err)
{
    uint64_t at = 0, size = gd_disk_size(ckpt->disk);
    bool sum = false, cut;
    int rc = GD_OK;

    while (at < size) {
        rc = is_sum(ckpt, at, &sum, err);
        if (rc != GD_OK || sum) {
            break;
        }
        rc = ms_read_record(&ckpt->reader, at, &ckpt->record, &cut, err);
        if (rc != GD_OK && cut && ckpt->options->partial) {
            gd_archive_add_note(ckpt->archive, "the file is truncated after byte %llu",
                                (unsigned long long)at);
            rc = GD_OK;
            break;
        }
        if (rc == GD_OK && at == 0) {
            ckpt->is_print = looks_like_print(&ckpt->record);
        }
        rc = rc != GD_OK ? rc : ckpt->is_print ? take_print(ckpt, err) : take_record(ckpt, err);
        if (rc != GD_OK) {
            break;
        }
        at = ckpt->record.end;
    }
    return rc != GD_OK || ckpt->is_print ? rc : end_parameter(ckpt, err);
}

/* ---- kinds of parameters --------------------------------------------------------------------- */

static const char *const state_prefixes[] = {"moment1.", "moment2.", "moments.", "adam_m.",
                                             "adam_v.",  "accum.",   "stat."};

static bool is_state(const char *name)
{
    static const char *const names[] = {
        "global_step", "learning_rate",         "momentum",
        "beta1_power", "beta2_power",           "scale_sense",
        "scale_value", "current_iterator_step", "last_overflow_iterator_step"};

    for (size_t i = 0; i < sizeof(state_prefixes) / sizeof(state_prefixes[0]); i++) {
        if (gd_starts_with(name, state_prefixes[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* An optimizer has state for each parameter it trains. */
static bool has_state(struct ckpt *ckpt, const char *name)
{
    char full[MS_MAX_TAG + 32];

    for (size_t i = 0; i < sizeof(state_prefixes) / sizeof(state_prefixes[0]); i++) {
        snprintf(full, sizeof(full), "%s%s", state_prefixes[i], name);
        if (find_parameter(ckpt, full) != UINT32_MAX) {
            return true;
        }
    }
    return false;
}

static void set_kind(struct ckpt *ckpt, const char *name, struct gd_archive_entry *entry)
{
    if (ckpt->is_print || strcmp(name, "epoch_num") == 0 || strcmp(name, "step_num") == 0) {
        entry->kind = GD_ENTRY_TENSOR;
    } else if (is_state(name)) {
        entry->kind = GD_ENTRY_OPTIMIZER;
    } else if (gd_ends_with(name, "moving_mean") || gd_ends_with(name, "moving_variance")) {
        entry->kind = GD_ENTRY_BUFFER;
        entry->trainable = GD_TRAINABLE_NO;
    } else {
        entry->kind = GD_ENTRY_PARAMETER;
        entry->trainable = has_state(ckpt, name) ? GD_TRAINABLE_YES : GD_TRAINABLE_UNKNOWN;
    }
}

static int add_entries(struct ckpt *ckpt, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < ckpt->count; i++) {
        const struct parameter *parameter = &ckpt->parameter[i];
        struct gd_archive_entry entry = {.name = parameter->name,
                                         .kind = GD_ENTRY_VALUE,
                                         .source = parameter->source,
                                         .text = parameter->text,
                                         .problem = parameter->problem};

        if (!parameter->text) {
            set_kind(ckpt, parameter->name, &entry);
        }
        rc = gd_archive_add(ckpt->archive, &entry, err);
    }
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int refuse_others(struct gd_disk *disk, struct gd_err *err)
{
    size_t size = gd_disk_size(disk) < 4 ? (size_t)gd_disk_size(disk) : 4;
    unsigned char start[4] = {0};
    int rc = gd_disk_read(disk, 0, start, size, err);

    if (rc == GD_OK && cipher_of(start, size)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.300s is encrypted (%s): save it without enc_key, or load and save it "
                       "again in MindSpore",
                       gd_disk_path(disk), cipher_of(start, size));
    }
    if (rc == GD_OK && is_strategy(start, size, disk)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.300s is a strategy file, which says how parameters are split over "
                       "devices: it has no weights",
                       gd_disk_path(disk));
    }
    return rc;
}

static int ckpt_read(struct gd_archive *archive, struct gd_disk *disk,
                     const struct gd_archive_options *options, struct gd_err *err)
{
    struct ckpt *ckpt;
    int rc = refuse_others(disk, err);

    if (rc != GD_OK) {
        return rc;
    }
    ckpt = calloc(1, sizeof(*ckpt));
    if (!ckpt) {
        return gd_fail_nomem(err);
    }
    ckpt->archive = archive;
    ckpt->disk = disk;
    ckpt->options = options;
    ms_reader_init(&ckpt->reader, disk);
    if (name_ends_with(disk, ".tmp")) {
        gd_archive_add_note(archive,
                            "its name ends in .tmp, so MindSpore may not have completed it");
    }
    rc = read_records(ckpt, err);
    rc = rc != GD_OK ? rc : add_entries(ckpt, err);
    for (int i = 0; i < MS_MAP_TENSORS; i++) {
        drop_chunks(&ckpt->chunks[i]);
    }
    for (uint32_t i = 0; i < ckpt->count; i++) {
        free_parameter(&ckpt->parameter[i]);
    }
    free(ckpt->parameter);
    free(ckpt->name);
    gd_hash_index_deinit(&ckpt->by_name);
    free(ckpt);
    return rc;
}

const struct gd_archive_format gd_ms_ckpt_format = {
    .name = "ckpt",
    .what = "MindSpore checkpoint (.ckpt)",
    .is = ckpt_is,
    .read = ckpt_read,
};
