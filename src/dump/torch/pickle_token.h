// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The program of a pickle, one opcode at a time, from memory or from a file. Nothing is interpreted
 * here: pickle_opcodes.c builds values from it, dump/memory/ reads large files in one pass.
 */
#ifndef GD_DUMP_PICKLE_TOKEN_H
#define GD_DUMP_PICKLE_TOKEN_H

#include "base/arena.h"
#include "dump/io/disk.h"

struct pickle_input {
    const unsigned char *at, *end; /* the bytes at hand */
    uint64_t offset;               /* of `at`, in the file or in memory */
    uint64_t left;                 /* bytes of the file after `end` */
    struct gd_disk *disk;          /* NULL: memory; then `left` is 0 */
    struct gd_arena *arena;        /* keeps what was read from the file; NULL: only `buffer` does */
    unsigned char *buffer;         /* without an arena: the bytes at hand; freed by the owner */
    size_t buffer_size;
    size_t keep; /* bytes before `at` that are still needed */
    const char *what;
    uint64_t opcode; /* offset of the current opcode */
};

/* What an opcode does; `how` and the operand are in the token. */
enum pickle_op {
    PICKLE_NOTHING, /* PROTO, FRAME: checked already */
    PICKLE_STOP,
    PICKLE_MARK,
    PICKLE_POP,
    PICKLE_POP_MARK,
    PICKLE_DUP,
    PICKLE_NONE,
    PICKLE_BOOL,     /* how: 0 or 1 */
    PICKLE_INT,      /* integer */
    PICKLE_FLOAT,    /* real */
    PICKLE_STRING,   /* text; how: TEXT, BYTES or BIG (enum gd_pickle_kind) */
    PICKLE_LINE,     /* text; how: the opcode, one of IFLSV of protocol 0 */
    PICKLE_EMPTY,    /* how: the kind of the container, here and below */
    PICKLE_COLLECT,  /* all values above the MARK */
    PICKLE_TUPLE,    /* how: the number of values */
    PICKLE_PUT_ONE,  /* APPEND, SETITEM */
    PICKLE_PUT_MANY, /* APPENDS, SETITEMS, ADDITEMS */
    PICKLE_MEMO_PUT, /* key */
    PICKLE_MEMO_GET, /* key */
    PICKLE_MEMOIZE,
    PICKLE_GLOBAL, /* text: the module; name */
    PICKLE_STACK_GLOBAL,
    PICKLE_CALL, /* how: the number of values */
    PICKLE_BUILD,
    PICKLE_BINPERSID,
    PICKLE_PERSID,  /* text */
    PICKLE_REFUSED, /* needs registries or code of a running Python */
};

struct pickle_token {
    enum pickle_op op;
    unsigned how;
    unsigned char opcode;
    uint32_t len, name_len;
    const char *text, *name; /* not NUL-terminated; without an arena: until the next token */
    union {
        int64_t integer;
        double real;
        uint64_t key;
    };
};

/* Reads the next opcode and its operand. GD_EPROTO: broken; GD_EUNSUPPORTED: another protocol;
 * GD_ELIMIT, GD_EIO, GD_ENOMEM. */
int pickle_next(struct pickle_input *input, struct pickle_token *ret, struct gd_err *err);
/* The name that Python's pickletools gives an opcode that calls something; "": any other. */
const char *pickle_opcode_name(unsigned char opcode);

/* Fails with `code`, naming the opcode's place: "model.pt: data.pkl: byte 17: ...". */
int pickle_fail(const struct pickle_input *input, struct gd_err *err, int code, const char *format,
                ...) __attribute__((format(printf, 4, 5)));
/* Makes the next `size` bytes, more than are at hand, one piece. */
int pickle_fill(struct pickle_input *input, uint64_t size, struct gd_err *err);
/* Takes the next `size` bytes in one piece. They live as long as the arena, else until the next
 * call. */
static inline int pickle_take(struct pickle_input *input, uint64_t size, const unsigned char **ret,
                              struct gd_err *err)
{
    if (size > (uint64_t)(input->end - input->at)) {
        int rc = pickle_fill(input, size, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    *ret = input->at;
    input->at += size;
    input->offset += size;
    return GD_OK;
}
/* Takes the bytes up to a newline, which is skipped and not counted. */
int pickle_take_line(struct pickle_input *input, const char **ret, uint32_t *len,
                     struct gd_err *err);

#endif
