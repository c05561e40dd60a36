// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The records of MindSpore's checkpoints and print files: consecutive protobuf messages of which
 * only tags, shapes and types are read; the position of the content is returned, the content is
 * skipped. (A protobuf library would need the whole file in memory.)
 *
 *     record    { 1: tag; 2: tensor | 3: maptensor }      of a checkpoint
 *     record    { 1: text | 2: tensor }                   of a print file
 *     tensor    { 1: dims, repeated; 2: type; 3: content }
 *     maptensor { 1: tensor, repeated: keys, values, status }
 */
#ifndef GD_DUMP_MS_CKPT_RECORD_H
#define GD_DUMP_MS_CKPT_RECORD_H

#include "base/tensor.h"
#include "dump/io/disk.h"

#define MS_MAX_TAG     4096
#define MS_MAX_TYPE    31
#define MS_MAP_TENSORS 3
#define MS_WINDOW      4096

struct ms_reader {
    struct gd_disk *disk;
    uint64_t size; /* of the file */
    uint64_t at;   /* offset of the window */
    size_t have;   /* bytes in the window */
    unsigned char window[MS_WINDOW];
};

struct ms_tensor {
    bool has_type, has_content;
    char type[MS_MAX_TYPE + 1];
    struct gd_shape shape;
    uint64_t at, size; /* of the content in the file */
};

struct ms_record {
    uint64_t begin, end; /* in the file */
    bool has_tag, has_tensor, has_map;
    uint32_t tag_len;
    char tag[MS_MAX_TAG + 1]; /* NUL-terminated; a print file's string is cut to fit */
    struct ms_tensor tensor;
    struct ms_tensor map[MS_MAP_TENSORS];
    int map_count;
};

void ms_reader_init(struct ms_reader *reader, struct gd_disk *disk);
/* Reads the record that begins at `at`. GD_EPROTO: broken, with the byte; GD_ELIMIT. *cut:
 * whether the file ends within it. */
int ms_read_record(struct ms_reader *reader, uint64_t at, struct ms_record *ret, bool *cut,
                   struct gd_err *err);

#endif
