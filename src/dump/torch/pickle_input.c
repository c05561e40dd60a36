// SPDX-License-Identifier: GPL-3.0-or-later
/* The bytes of a pickle's program: in memory, or parts of a file read on demand. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/torch/pickle_token.h"

#define PIECE_BYTES  ((uint64_t)64 << 10)
#define MAX_LINE     ((uint64_t)16 << 20)
/* without an arena */
#define BUFFER_BYTES ((uint64_t)1 << 20)
#define MAX_BUFFER   ((uint64_t)64 << 20)

int pickle_fail(const struct pickle_input *input, struct gd_err *err, int code, const char *format,
                ...)
{
    char text[GD_ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gd_fail(err, code, "%s: byte %llu: %s", input->what, (unsigned long long)input->opcode, text);
    if (err) {
        err->offset = (size_t)input->opcode;
    }
    return code;
}

/* Room for `size` bytes, the first `have` of which are those at `from`. NULL: the error is set. */
static unsigned char *new_piece(struct pickle_input *input, const unsigned char *from, size_t have,
                                size_t size, struct gd_err *err)
{
    unsigned char *piece;

    if (input->arena) {
        piece = gd_arena_alloc(input->arena, size);
        if (!piece) {
            pickle_fail(input, err, GD_ELIMIT, "the pickle takes more memory than its size allows");
            return NULL;
        }
        memcpy(piece, from, have);
        return piece;
    }
    if (size > MAX_BUFFER) {
        pickle_fail(input, err, GD_ELIMIT, "a string of more than %llu MiB",
                    (unsigned long long)(MAX_BUFFER >> 20));
        return NULL;
    }
    if (size > input->buffer_size) {
        piece = malloc(size);
        if (!piece) {
            pickle_fail(input, err, GD_ELIMIT, "out of memory");
            return NULL;
        }
        memcpy(piece, from, have);
        free(input->buffer);
        input->buffer = piece;
        input->buffer_size = size;
    } else {
        memmove(input->buffer, from, have);
    }
    return input->buffer;
}

/* Reads more until `size` bytes at `at` are in one piece. */
static int fill_input(struct pickle_input *input, uint64_t size, struct gd_err *err)
{
    uint64_t have = (uint64_t)(input->end - input->at);
    uint64_t least = input->arena ? PIECE_BYTES : BUFFER_BYTES;
    uint64_t want = size > least ? size : least;
    size_t keep = input->keep;
    unsigned char *piece;
    int rc;

    want = want < have + input->left ? want : have + input->left;
    piece = new_piece(input, input->at - keep, keep + (size_t)have, keep + (size_t)want, err);
    if (!piece) {
        return GD_ELIMIT;
    }
    piece += keep;
    rc = gd_disk_read(input->disk, input->offset + have, piece + have, (size_t)(want - have), err);
    if (rc != GD_OK) {
        return rc;
    }
    input->left -= want - have;
    input->at = piece;
    input->end = piece + want;
    return GD_OK;
}

int pickle_fill(struct pickle_input *input, uint64_t size, struct gd_err *err)
{
    uint64_t have = (uint64_t)(input->end - input->at);

    if (size - have > input->left) {
        return pickle_fail(input, err, GD_EPROTO,
                           "%llu bytes announced, but only %llu left of the pickle",
                           (unsigned long long)size, (unsigned long long)(have + input->left));
    }
    return fill_input(input, size, err);
}

int pickle_take_line(struct pickle_input *input, const char **ret, uint32_t *len,
                     struct gd_err *err)
{
    uint64_t seen = 0;

    for (;;) {
        uint64_t have = (uint64_t)(input->end - input->at);
        const unsigned char *newline =
            have > seen ? memchr(input->at + seen, '\n', (size_t)(have - seen)) : NULL;
        int rc;

        if (newline) {
            *ret = (const char *)input->at;
            *len = (uint32_t)(newline - input->at);
            input->offset += (uint64_t)*len + 1;
            input->at = newline + 1;
            return GD_OK;
        }
        if (!input->left) {
            return pickle_fail(input, err, GD_EPROTO, "the opcode's line is not terminated");
        }
        if (have > MAX_LINE) {
            return pickle_fail(input, err, GD_ELIMIT, "the opcode's line is longer than 16 MiB");
        }
        seen = have;
        rc = fill_input(input,
                        have * 2 + 1 < have + input->left ? have * 2 + 1 : have + input->left, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
}
