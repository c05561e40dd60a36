// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_container.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cann_dump.pb-c.h"
#include "dump/cann/cann_container_impl.h"
#include "dump/io/little_endian.h"

#define MAX_HEADER ((uint64_t)64 << 20)
#define MAX_LEGACY ((uint64_t)1 << 30) /* contains the tensors */
#define MIN_HEADER 8
/* Limit on the memory of the description: a hostile one grows a hundredfold when unpacked. */
#define MIN_MEMORY ((size_t)16 << 20)
#define MAX_GROWTH 24

static const char *const io_names[] = {"input", "output", "buffer", "space"};

static size_t memory_for(uint64_t len)
{
    size_t words = len < MIN_MEMORY ? (size_t)len : MIN_MEMORY;

    return MIN_MEMORY + MAX_GROWTH * words + (size_t)len;
}

/* ---- the description ------------------------------------------------------------------------- */

static void *take_memory(void *arena, size_t size)
{
    return gd_arena_alloc(arena, size);
}

static void let_be(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer; /* no-op: the arena is freed as a whole */
}

bool cann_set_shape(struct gd_shape *shape, bool *has, const uint64_t *dim, size_t count)
{
    *has = false;
    if (count > GD_MAX_RANK) {
        return false;
    }
    shape->rank = (int)count;
    for (size_t i = 0; i < count; i++) {
        if (dim[i] > INT64_MAX) {
            return false;
        }
        shape->dim[i] = (int64_t)dim[i];
    }
    *has = gd_shape_count(shape) >= 0;
    return *has;
}

static bool take_shape(const CannDump__Shape *from, struct gd_shape *shape, bool *has)
{
    return !from || cann_set_shape(shape, has, from->dim, from->n_dim);
}

/* Newer writers pack groups and C0 into the bits above the format. */
static void take_format(struct gd_cann_tensor *tensor, int32_t format, int32_t sub_format)
{
    tensor->format = format & 0xff;
    tensor->group = sub_format > 0 ? (uint32_t)sub_format : ((uint32_t)format & 0xffff00u) >> 8;
}

static void take_data(struct gd_cann_tensor *tensor, uint64_t size, const ProtobufCBinaryData *data)
{
    tensor->size = size;
    if (data->len > 0) {
        tensor->data = data->data;
        tensor->size = tensor->there = data->len;
    }
}

static void take_input(struct gd_cann_tensor *tensor, const CannDump__OpInput *from)
{
    tensor->data_type = from->data_type;
    take_format(tensor, from->format, from->sub_format);
    tensor->bad_shape = !take_shape(from->shape, &tensor->shape, &tensor->has_shape) ||
                        !take_shape(from->original_shape, &tensor->original, &tensor->has_original);
    take_data(tensor, from->size, &from->data);
}

static void take_output(struct gd_cann_tensor *tensor, const CannDump__OpOutput *from)
{
    const CannDump__OriginalOp *original = from->original_op;

    tensor->data_type = from->data_type;
    take_format(tensor, from->format, from->sub_format);
    tensor->bad_shape = !take_shape(from->shape, &tensor->shape, &tensor->has_shape) ||
                        !take_shape(from->original_shape, &tensor->original, &tensor->has_original);
    take_data(tensor, from->size, &from->data);
    if (original && original->name[0] != '\0') {
        tensor->original_op = original->name;
        tensor->original_output = original->output_index;
        tensor->original_format = original->format & 0xff;
    }
}

static struct gd_cann_tensor *add_tensor(struct gd_cann_file *file, enum gd_cann_io io)
{
    struct gd_cann_tensor *tensor = &file->tensor[file->count++];

    *tensor = (struct gd_cann_tensor){.io = io,
                                      .index = file->count_of[io]++,
                                      .data_type = 4, /* bytes, for lack of a type */
                                      .format = 2,
                                      .original_op = "",
                                      .original_format = -1};
    return tensor;
}

static int take_all(struct gd_cann_file *file, const CannDump__DumpData *from, struct gd_err *err)
{
    size_t count = from->n_input + from->n_output + from->n_buffer + from->n_space;

    file->tensor = gd_arena_alloc(&file->arena, (count + 1) * sizeof(*file->tensor));
    file->dfx =
        gd_arena_strndup(&file->arena, (const char *)from->dfx_message.data, from->dfx_message.len);
    if (!file->tensor || !file->dfx) {
        return gd_fail(err, GD_ELIMIT, "its description would take too much memory");
    }
    file->version = from->version;
    file->op_name = from->op_name;
    file->dump_time = from->dump_time;
    for (size_t i = 0; i < from->n_input; i++) {
        take_input(add_tensor(file, GD_CANN_INPUT), from->input[i]);
    }
    for (size_t i = 0; i < from->n_output; i++) {
        take_output(add_tensor(file, GD_CANN_OUTPUT), from->output[i]);
    }
    for (size_t i = 0; i < from->n_buffer; i++) {
        struct gd_cann_tensor *tensor = add_tensor(file, GD_CANN_BUFFER);

        tensor->buffer_type = from->buffer[i]->buffer_type;
        take_data(tensor, from->buffer[i]->size, &from->buffer[i]->data);
    }
    for (size_t i = 0; i < from->n_space; i++) {
        struct gd_cann_tensor *tensor = add_tensor(file, GD_CANN_SPACE);

        tensor->buffer_type = from->space[i]->type;
        take_data(tensor, from->space[i]->size, &from->space[i]->data);
    }
    return GD_OK;
}

static int read_message(struct gd_cann_file *file, const unsigned char *header, size_t len,
                        struct gd_err *err)
{
    ProtobufCAllocator allocator = {
        .alloc = take_memory, .free = let_be, .allocator_data = &file->arena};
    CannDump__DumpData *message = cann_dump__dump_data__unpack(&allocator, len, header);

    if (!message) {
        return gd_fail(err, GD_EPROTO, "its description (%zu bytes) is not a DumpData message",
                       len);
    }
    /* Random bytes may parse as a message of unknown fields. */
    if (!isdigit((unsigned char)message->version[0]) &&
        message->n_input + message->n_output + message->n_buffer + message->n_space == 0) {
        return gd_fail(err, GD_EPROTO, "its description has no version and no tensor");
    }
    return take_all(file, message, err);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Places each tensor's bytes one after the other, starting at `at`. */
static void place_bytes(struct gd_cann_file *file, uint64_t at, uint64_t file_size)
{
    uint64_t missing = 0;

    for (uint32_t i = 0; i < file->count; i++) {
        struct gd_cann_tensor *tensor = &file->tensor[i];

        if (tensor->data) {
            continue;
        }
        tensor->at = at;
        tensor->there = at >= file_size                 ? 0
                        : tensor->size < file_size - at ? tensor->size
                                                        : file_size - at;
        if (__builtin_add_overflow(at, tensor->size, &at)) {
            at = UINT64_MAX;
        }
        if (__builtin_add_overflow(missing, tensor->size - tensor->there, &missing)) {
            missing = UINT64_MAX;
        }
    }
    file->missing = missing;
    file->extra = at < file_size ? file_size - at : 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_described(struct gd_cann_file *file, struct gd_disk *disk, uint64_t header_len,
                          struct gd_err *err)
{
    unsigned char *header = malloc((size_t)header_len);
    int rc = header ? gd_disk_read(disk, 8, header, (size_t)header_len, err) : gd_fail_nomem(err);

    gd_arena_init(&file->arena, memory_for(header_len));
    if (rc == GD_OK && gd_little_endian(header, 4) == CANN_NANO_MAGIC) {
        rc = cann_read_nano(file, header, (size_t)header_len, err);
    } else if (rc == GD_OK) {
        rc = read_message(file, header, (size_t)header_len, err);
    }
    if (rc == GD_OK) {
        place_bytes(file, 8 + header_len, gd_disk_size(disk));
    }
    free(header);
    return rc;
}

/* Old releases wrote only the message, which contains the tensors. */
static int read_legacy(struct gd_cann_file *file, struct gd_disk *disk, struct gd_err *err)
{
    uint64_t size = gd_disk_size(disk);
    unsigned char *all = size > 0 && size <= MAX_LEGACY ? malloc((size_t)size) : NULL;
    int rc = all ? gd_disk_read(disk, 0, all, (size_t)size, err)
                 : gd_fail(err, GD_EPROTO, "it is too large for a message");

    gd_arena_init(&file->arena, memory_for(size));
    rc = rc != GD_OK ? rc : read_message(file, all, (size_t)size, err);
    if (rc == GD_OK) {
        file->layout = GD_CANN_LEGACY;
        place_bytes(file, size, size);
    }
    free(all);
    return rc;
}

/* The first field is the version, which starts with a digit. */
static bool looks_legacy(const unsigned char *start, size_t len)
{
    return len >= 3 && start[0] == 0x0a && start[1] > 0 && start[1] < 32 && isdigit(start[2]);
}

static bool header_fits(uint64_t header_len, uint64_t file_size)
{
    return file_size >= 8 && header_len >= MIN_HEADER && header_len <= file_size - 8 &&
           header_len <= MAX_HEADER;
}

bool gd_cann_looks_right(const unsigned char *start, size_t len, uint64_t file_size)
{
    if (len >= 8 && header_fits(gd_little_endian(start, 8), file_size)) {
        /* All field numbers of the message are below 16, so each key is one byte. */
        return len < 9 || start[8] == 0x5a || (start[8] >= 0x08 && start[8] < 0x80);
    }
    return looks_legacy(start, len);
}

static void start_over(struct gd_cann_file *file)
{
    gd_arena_deinit(&file->arena);
    memset(file, 0, sizeof(*file));
    file->version = file->op_name = file->dfx = "";
}

int gd_cann_read(struct gd_disk *disk, struct gd_cann_file **ret, struct gd_err *err)
{
    struct gd_cann_file *file = calloc(1, sizeof(*file));
    uint64_t size = gd_disk_size(disk), header_len;
    unsigned char start[8] = {0};
    struct gd_err why = {0};
    int rc = GD_OK;

    if (!file) {
        return gd_fail_nomem(err);
    }
    gd_arena_init(&file->arena, 0);
    start_over(file);
    rc = gd_disk_read(disk, 0, start, size < 8 ? (size_t)size : 8, &why);
    header_len = gd_little_endian(start, 8);
    if (rc == GD_OK && header_fits(header_len, size)) {
        rc = read_described(file, disk, header_len, &why);
    } else if (rc == GD_OK) {
        rc = gd_fail(&why, GD_EPROTO, "it does not begin with the length of a description");
    }
    if (rc == GD_EPROTO && looks_legacy(start, size < 8 ? (size_t)size : 8)) {
        start_over(file);
        rc = read_legacy(file, disk, &why);
    }
    if (rc != GD_OK) {
        gd_cann_free(file);
        return gd_fail(err, rc, "%.300s: not a dump of an operator: %.150s", gd_disk_path(disk),
                       why.text);
    }
    *ret = file;
    return GD_OK;
}

void gd_cann_free(struct gd_cann_file *file)
{
    if (file) {
        gd_arena_deinit(&file->arena);
        free(file);
    }
}

const struct gd_cann_tensor *gd_cann_find(const struct gd_cann_file *file, enum gd_cann_io io,
                                          uint32_t index)
{
    for (uint32_t i = 0; i < file->count; i++) {
        if (file->tensor[i].io == io && file->tensor[i].index == index) {
            return &file->tensor[i];
        }
    }
    return NULL;
}

const char *gd_cann_io_name(enum gd_cann_io io)
{
    return io_names[io];
}
