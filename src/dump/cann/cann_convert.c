// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_convert.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/cann/cann_dirs.h"
#include "dump/cann/cann_opdebug.h"
#include "dump/cann/cann_source.h"
#include "dump/cann/cann_types.h"
#include "dump/io/file_name.h"
#include "engine/format.h"

#define MAX_ENTRIES (UINT32_C(1) << 25)
#define MAX_NAME    4096
#define NAME_LIMIT  255                /* longest file name, in characters */
#define BLOCK       ((int64_t)1 << 16) /* elements written at once */
#define MAX_MAPPING ((size_t)256 << 20)

struct convert {
    const struct gd_cann_convert_options *options;
    const struct gd_listing *listing;
    struct gd_folder *folder; /* current output directory */
    struct gd_buf mapping;    /* lines for its mapping.csv */
    struct gd_cann_converted *done;
    struct gd_err *err;
    /* the file being converted: */
    struct gd_disk *disk;
    const struct gd_cann_file *file;
    const char *base; /* its name */
};

static void leave_out(struct convert *convert, const char *path, const char *why)
{
    convert->done->left_out++;
    if (convert->options->left_out) {
        convert->options->left_out(convert->options->ctx, path, why);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Python's uuid3 in the DNS name space, as 32 digits. */
static void make_uuid3(const char *name, char ret[33])
{
    static const unsigned char dns[16] = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                          0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
    unsigned char digest[16];
    MD5_CTX md5;

    MD5Init(&md5);
    MD5Update(&md5, dns, sizeof(dns));
    MD5Update(&md5, (const uint8_t *)name, strlen(name));
    MD5Final(digest, &md5);
    digest[6] = (unsigned char)((digest[6] & 0x0f) | 0x30);
    digest[8] = (unsigned char)((digest[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++) {
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    }
}

/* The name for an output file; a name too long becomes digits and a line in mapping.csv. */
static const char *short_name(struct convert *convert, const char *name, const char *suffix,
                              char room[64])
{
    char digits[33];

    if (strlen(name) < NAME_LIMIT) {
        return name;
    }
    make_uuid3(name, digits);
    snprintf(room, 64, "%s%.16s", digits, suffix);
    gd_buf_printf(&convert->mapping, "%s,%s\n", room, name);
    return room;
}

static void add_dims(struct gd_buf *name, const struct gd_shape *shape, char between)
{
    for (int i = 0; i < shape->rank; i++) {
        if (i > 0) {
            gd_buf_putc(name, between);
        }
        gd_buf_printf(name, "%" PRId64, shape->dim[i]);
    }
}

/* The second of five fields is the operator's name without scopes. */
static void add_mindspore_base(const struct convert *convert, struct gd_buf *name)
{
    const char *op = strrchr(convert->file->op_name, '/'), *dot = convert->base, *rest;
    int dots = 0;

    op = op ? op + 1 : convert->file->op_name;
    for (const char *p = convert->base; *p; p++) {
        dots += *p == '.';
    }
    if (dots != 4 || op[0] == '\0') {
        gd_buf_puts(name, convert->base);
        return;
    }
    dot = strchr(convert->base, '.');
    rest = strchr(dot + 1, '.');
    gd_buf_add(name, convert->base, (size_t)(dot + 1 - convert->base));
    gd_buf_puts(name, op);
    gd_buf_puts(name, rest);
}

static void tensor_name(const struct convert *convert, const struct gd_cann_tensor *tensor,
                        const struct gd_source_info *info, bool converted, struct gd_buf *name)
{
    const char *io = gd_cann_io_name(tensor->io);
    const char *format = gd_cann_format_name(converted ? convert->options->format : tensor->format);

    if (convert->options->as == GD_CANN_AS_MINDSPORE) {
        add_mindspore_base(convert, name);
        gd_buf_printf(name, ".%s.%u.%s.npy", io, tensor->index, format ? format : "UNDEFINED");
        return;
    }
    gd_buf_printf(name, "%s.%s.%u.", convert->base, io, tensor->index);
    if (convert->options->as == GD_CANN_AS_BIN) {
        add_dims(name, &info->shape, '_');
        gd_buf_printf(name, ".%s.%s.bin", gd_cann_numpy_name(tensor->data_type),
                      format ? format : "UNDEFINED");
    } else if (converted) {
        add_dims(name, &info->shape, 'x');
        gd_buf_puts(name, ".npy");
    } else {
        gd_buf_puts(name, "npy");
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* numpy has no bfloat16: widen it to float32. */
static void widen_block(void *block, int64_t count)
{
    uint16_t *narrow = block;
    float *wide = block;

    for (int64_t i = count; i-- > 0;) {
        uint16_t bits;

        memcpy(&bits, &narrow[i], sizeof(bits));
        wide[i] = gd_bfloat16_to_float(bits);
    }
}

static int write_elements(struct convert *convert, struct gd_source *source,
                          const struct gd_source_info *info, struct gd_folder_file *out)
{
    int64_t count = gd_shape_count(&info->shape);
    bool widen = info->dtype == GD_BFLOAT16;
    size_t item = widen ? sizeof(float) : gd_dtype_size(info->dtype);
    void *block = malloc((size_t)BLOCK * item);
    int rc = block ? GD_OK : gd_fail_nomem(convert->err);

    for (int64_t at = 0; at < count && rc == GD_OK; at += BLOCK) {
        int64_t now = count - at < BLOCK ? count - at : BLOCK;

        rc = gd_source_read_run(source, at, now, block, convert->err);
        if (rc == GD_OK && widen) {
            widen_block(block, now);
        }
        rc = rc != GD_OK ? rc : gd_folder_write(out, block, (size_t)now * item, convert->err);
    }
    free(block);
    return rc;
}

static int write_header(struct convert *convert, const struct gd_source_info *info,
                        struct gd_folder_file *out)
{
    struct gd_buf header = GD_BUF_INIT(65536);
    int rc = gd_npy_header(info->dtype == GD_BFLOAT16 ? GD_FLOAT32 : info->dtype, &info->shape,
                           &header, convert->err);

    rc = rc != GD_OK ? rc : gd_folder_write(out, gd_buf_text(&header), header.len, convert->err);
    gd_buf_deinit(&header);
    return rc;
}

static int write_source(struct convert *convert, const char *name, struct gd_source *source,
                        const struct gd_source_info *info)
{
    bool is_npy = convert->options->as != GD_CANN_AS_BIN;
    struct gd_folder_file *out;
    char room[64];
    int rc, end;

    name = short_name(convert, name, is_npy ? ".npy" : ".bin", room);
    rc = gd_folder_begin(convert->folder, name, &out, convert->err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = is_npy ? write_header(convert, info, out) : GD_OK;
    rc = rc != GD_OK ? rc : write_elements(convert, source, info, out);
    end = gd_folder_end(out, rc == GD_OK, convert->err);
    return rc != GD_OK ? rc : end;
}

/* Opens the tensor in the wanted format, or as stored; *converted says which. */
static int open_source(struct convert *convert, const struct gd_cann_tensor *tensor,
                       struct gd_source **ret, bool *converted)
{
    int32_t format = convert->options->format;
    struct gd_cann_plan plan;

    *converted = false;
    if (format >= 0) {
        gd_cann_plan(tensor, tensor->original_format, format, &plan);
        *converted = plan.converts || tensor->format == format;
        if (*converted) {
            return gd_cann_source(convert->disk, convert->file, tensor, tensor->original_format,
                                  format, ret, convert->err);
        }
    }
    return gd_cann_source_stored(convert->disk, convert->file, tensor, ret, convert->err);
}

static int write_tensor(struct convert *convert, const struct gd_cann_tensor *tensor)
{
    const char *wanted = gd_cann_format_name(convert->options->format);
    const char *stored = gd_cann_format_name(tensor->format);
    struct gd_buf name = GD_BUF_INIT(MAX_NAME);
    struct gd_source_info info;
    struct gd_source *source;
    char why[160];
    bool converted;
    int rc = open_source(convert, tensor, &source, &converted);

    if (rc != GD_OK) {
        return rc;
    }
    if (wanted && !converted) {
        snprintf(why, sizeof(why), "%s %u is written as stored: %s cannot be converted to %s",
                 gd_cann_io_name(tensor->io), tensor->index, stored ? stored : "its format",
                 wanted);
        leave_out(convert, gd_disk_path(convert->disk), why);
    }
    rc = gd_source_info(source, &info, convert->err);
    if (rc == GD_OK) {
        tensor_name(convert, tensor, &info, converted, &name);
        rc = name.failed ? gd_fail(convert->err, GD_ELIMIT, "the name would be too long")
                         : write_source(convert, gd_buf_text(&name), source, &info);
    }
    gd_buf_deinit(&name);
    gd_source_unref(source);
    convert->done->tensors += rc == GD_OK;
    return rc;
}

/* Writes a buffer or workspace as bytes. */
static int write_bytes(struct convert *convert, const struct gd_cann_tensor *tensor)
{
    struct gd_source *source;
    struct gd_source_info info;
    struct gd_folder_file *out;
    char name[MAX_NAME], room[64], kind[32];
    int rc = gd_cann_source_stored(convert->disk, convert->file, tensor, &source, convert->err);
    int end;

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(kind, sizeof(kind), tensor->buffer_type == 0 ? "l1" : "type%d", tensor->buffer_type);
    snprintf(name, sizeof(name), "%s.%s%s.%u.bin", convert->base,
             tensor->io == GD_CANN_BUFFER ? kind : "",
             tensor->io == GD_CANN_BUFFER ? "buffer" : "space", tensor->index);
    rc = gd_source_info(source, &info, convert->err);
    rc = rc != GD_OK ? rc
                     : gd_folder_begin(convert->folder, short_name(convert, name, ".bin", room),
                                       &out, convert->err);
    if (rc == GD_OK) {
        rc = write_elements(convert, source, &info, out);
        end = gd_folder_end(out, rc == GD_OK, convert->err);
        rc = rc != GD_OK ? rc : end;
    }
    gd_source_unref(source);
    convert->done->buffers += rc == GD_OK;
    return rc;
}

static int write_record(struct convert *convert, const struct gd_cann_tensor *tensor)
{
    struct gd_buf json = GD_BUF_INIT((size_t)1 << 20);
    unsigned char bytes[GD_CANN_OPDEBUG_BYTES];
    struct gd_cann_opdebug record;
    char name[MAX_NAME];
    int rc;

    if (tensor->there < sizeof(bytes) || tensor->data) {
        return gd_fail(convert->err, GD_EPROTO, "an overflow record must have %zu bytes",
                       sizeof(bytes));
    }
    rc = gd_disk_read(convert->disk, tensor->at, bytes, sizeof(bytes), convert->err);
    if (rc == GD_OK && !gd_cann_opdebug_read(bytes, sizeof(bytes), &record)) {
        rc = gd_fail(convert->err, GD_EPROTO, "an overflow record of an unknown unit");
    }
    if (rc == GD_OK) {
        gd_cann_opdebug_json(&record, &json);
        snprintf(name, sizeof(name), "%s.output.%u.json", convert->base, tensor->index);
        rc = gd_folder_put(convert->folder, name, gd_buf_text(&json), json.len, convert->err);
    }
    gd_buf_deinit(&json);
    convert->done->records += rc == GD_OK;
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_entry(struct convert *convert, const struct gd_cann_tensor *tensor, bool is_record)
{
    switch (tensor->io) {
    case GD_CANN_BUFFER:
    case GD_CANN_SPACE: return write_bytes(convert, tensor);
    case GD_CANN_OUTPUT:
        if (is_record) {
            return write_record(convert, tensor);
        }
        return write_tensor(convert, tensor);
    default: return write_tensor(convert, tensor);
    }
}

/* A full disk ends the conversion; an error in one tensor does not. */
static int write_entries(struct convert *convert, bool is_record)
{
    struct gd_err *err = convert->err, why = {0};
    int rc = GD_OK;

    for (uint32_t i = 0; i < convert->file->count && rc == GD_OK; i++) {
        if (convert->file->tensor[i].size == 0) {
            continue; /* the operator did not get it */
        }
        convert->err = &why;
        rc = write_entry(convert, &convert->file->tensor[i], is_record);
        convert->err = err;
        if (rc == GD_EIO || rc == GD_ENOMEM) {
            return gd_fail(err, rc, "%s", why.text);
        }
        if (rc != GD_OK) {
            leave_out(convert, gd_disk_path(convert->disk), why.text);
            rc = GD_OK;
        }
    }
    return rc;
}

static int convert_file(struct convert *convert, uint32_t entry, const char *base, bool is_record)
{
    struct gd_cann_file *file = NULL;
    struct gd_err why = {0};
    char path[PATH_MAX];
    int rc = gd_listing_path(convert->listing, entry, path, sizeof(path), &why);

    convert->disk = NULL;
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, &convert->disk, &why);
    rc = rc != GD_OK ? rc : gd_cann_read(convert->disk, &file, &why);
    if (rc != GD_OK) {
        gd_disk_unref(convert->disk);
        leave_out(convert, path, why.text);
        return rc == GD_ENOMEM ? gd_fail(convert->err, rc, "%s", why.text) : GD_OK;
    }
    convert->file = file;
    convert->base = base;
    convert->done->files++;
    rc = write_entries(convert, is_record);
    gd_cann_free(file);
    gd_disk_unref(convert->disk);
    return rc;
}

/* Appends to mapping.csv, except lines it already has. */
static int write_mapping(struct convert *convert)
{
    struct gd_buf all = GD_BUF_INIT(MAX_MAPPING);
    int rc = GD_OK;

    if (convert->mapping.len == 0) {
        return GD_OK;
    }
    rc = gd_folder_get(convert->folder, "mapping.csv", MAX_MAPPING, &all, convert->err);
    for (const char *line = gd_buf_text(&convert->mapping), *end; rc == GD_OK && *line;
         line = end) {
        end = strchr(line, '\n') + 1;
        if (!memmem(gd_buf_text(&all), all.len, line, (size_t)(end - line))) {
            gd_buf_add(&all, line, (size_t)(end - line));
        }
    }
    if (rc == GD_OK && (all.failed || convert->mapping.failed)) {
        rc = gd_fail(convert->err, GD_ELIMIT, "mapping.csv would be too large");
    }
    rc = rc != GD_OK ? rc
                     : gd_folder_put(convert->folder, "mapping.csv", gd_buf_text(&all), all.len,
                                     convert->err);
    gd_buf_deinit(&all);
    gd_buf_clear(&convert->mapping);
    return rc;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The output directory for a directory of the listing; never closes the target itself. */
static int enter_directory(struct convert *convert, struct gd_folder *top, uint32_t directory)
{
    uint32_t above[GD_LISTING_DEPTH + 1];
    struct gd_folder *at = top, *next;
    int depth = 0, rc = GD_OK;

    for (uint32_t i = directory; i != 0 && depth <= GD_LISTING_DEPTH;
         i = convert->listing->entry[i].parent) {
        above[depth++] = i;
    }
    while (depth > 0 && rc == GD_OK) {
        rc = gd_folder_child(at, convert->listing->entry[above[--depth]].name, &next, convert->err);
        if (at != top) {
            gd_folder_close(at);
        }
        at = rc == GD_OK ? next : NULL;
    }
    convert->folder = at;
    return rc;
}

/* The original name of a dump file; a mapped name that is not valid is ignored. */
static const char *base_of(const struct gd_listing *listing, uint32_t entry, const char *text)
{
    return text[0] && !strchr(text, '/') ? text : gd_base_name(listing->entry[entry].name);
}

static int convert_directory(struct convert *convert, struct gd_folder *top,
                             const struct cann_dir *dir)
{
    const struct gd_listing_entry *entry = convert->listing->entry;
    bool is_directory = entry[dir->entry].is_directory;
    struct gd_mapping *mapping = NULL;
    int rc = gd_mapping_read(convert->listing, dir->entry, &mapping, convert->err);
    uint32_t at = is_directory ? entry[dir->entry].first_child : dir->entry;

    rc = rc != GD_OK ? rc : enter_directory(convert, top, is_directory ? dir->entry : 0);
    for (; rc == GD_OK && at != GD_NO_ENTRY; at = is_directory ? entry[at].next : GD_NO_ENTRY) {
        struct gd_cann_name name;
        const char *text;

        if (cann_file_kind(convert->listing, at, mapping, dir->place.exceptions, &name, &text) !=
            CANN_FILE_CONTAINER) {
            continue;
        }
        if (convert->options->go_on &&
            !convert->options->go_on(convert->options->ctx, convert->done->files)) {
            rc = gd_fail(convert->err, GD_EINTR, "interrupted");
        } else {
            rc = convert_file(convert, at, base_of(convert->listing, at, text),
                              name.kind == GD_CANN_OVERFLOW);
        }
    }
    if (convert->folder) { /* also for files written before an error */
        int end = write_mapping(convert);

        rc = rc != GD_OK ? rc : end;
    }
    if (convert->folder != top) {
        gd_folder_close(convert->folder);
    }
    convert->folder = NULL;
    gd_mapping_free(mapping);
    return rc;
}

int gd_cann_convert_tree(const char *from, struct gd_folder *to,
                         const struct gd_cann_convert_options *options,
                         struct gd_cann_converted *ret, struct gd_err *err)
{
    struct convert convert = {
        .options = options, .mapping = GD_BUF_INIT(MAX_MAPPING), .done = ret, .err = err};
    struct gd_listing *listing;
    struct cann_dirs tree;
    int rc;

    *ret = (struct gd_cann_converted){.files = 0};
    rc = gd_listing_read(from, MAX_ENTRIES, options->go_on, options->ctx, &listing, err);
    if (rc != GD_OK) {
        return rc;
    }
    convert.listing = listing;
    rc = cann_dirs_read(listing, &tree, err);
    if (rc == GD_OK && tree.count == 0) {
        rc = gd_fail(err, GD_EPROTO, "no CANN dump files in %.300s", from);
        cann_dirs_clear(&tree);
    } else if (rc == GD_OK) {
        for (size_t i = 0; i < tree.count && rc == GD_OK; i++) {
            rc = convert_directory(&convert, to, &tree.dir[i]);
        }
        cann_dirs_clear(&tree);
    }
    gd_buf_deinit(&convert.mapping);
    gd_listing_free(listing);
    return rc;
}
