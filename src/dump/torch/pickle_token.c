// SPDX-License-Identifier: GPL-3.0-or-later
/* The opcodes of pickles, and the operands that follow them. */
#include "dump/torch/pickle_token.h"

#include <limits.h>
#include <string.h>

#include "dump/io/little_endian.h"
#include "dump/torch/pickle.h"

/* ---- operands -------------------------------------------------------------------------------- */

typedef int (*operand_fn)(struct pickle_input *input, unsigned size, struct pickle_token *token,
                          struct gd_err *err);

static int fail_broken(const struct pickle_input *input, struct gd_err *err, const char *why)
{
    return pickle_fail(input, err, GD_EPROTO, "%s", why);
}

static int read_proto(struct pickle_input *input, unsigned size, struct pickle_token *token,
                      struct gd_err *err)
{
    const unsigned char *version;
    int rc = pickle_take(input, size, &version, err);

    (void)token;
    if (rc == GD_OK && *version > 5) {
        return pickle_fail(input, err, GD_EUNSUPPORTED,
                           "pickle protocol %d: only 0 to 5 are supported", *version);
    }
    return rc;
}

static int read_frame(struct pickle_input *input, unsigned size, struct pickle_token *token,
                      struct gd_err *err)
{
    const unsigned char *bytes;
    int rc = pickle_take(input, size, &bytes, err);

    (void)token;
    if (rc == GD_OK &&
        gd_little_endian(bytes, size) > (uint64_t)(input->end - input->at) + input->left) {
        return fail_broken(input, err, "a frame that exceeds the pickle");
    }
    return rc;
}

static int read_int(struct pickle_input *input, unsigned size, struct pickle_token *token,
                    struct gd_err *err)
{
    const unsigned char *bytes;
    int rc = pickle_take(input, size, &bytes, err);

    if (rc == GD_OK) {
        uint64_t number = gd_little_endian(bytes, size);

        token->integer = size == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number;
    }
    return rc;
}

/* Two's complement; its length precedes it, in `size` bytes. */
static int read_long(struct pickle_input *input, unsigned size, struct pickle_token *token,
                     struct gd_err *err)
{
    const unsigned char *bytes;
    uint64_t len, number;
    int rc = pickle_take(input, size, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    len = gd_little_endian(bytes, size);
    if (size == 4 && len > INT32_MAX) {
        return fail_broken(input, err, "an integer with a negative length");
    }
    rc = pickle_take(input, len, &bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    while (len > 8 && bytes[len - 1] == (bytes[len - 2] & 0x80 ? 0xff : 0)) {
        len--; /* redundant: it only repeats the sign */
    }
    if (len > 8) {
        token->op = PICKLE_STRING;
        token->how = GD_PICKLE_BIG;
        token->text = (const char *)bytes;
        token->len = (uint32_t)len;
        return GD_OK;
    }
    number = gd_little_endian(bytes, (unsigned)len);
    if (len && len < 8 && bytes[len - 1] & 0x80) {
        number |= UINT64_MAX << (8 * len);
    }
    token->integer = (int64_t)number;
    return GD_OK;
}

static int read_float(struct pickle_input *input, unsigned size, struct pickle_token *token,
                      struct gd_err *err)
{
    const unsigned char *bytes;
    uint64_t bits = 0;
    int rc = pickle_take(input, size, &bytes, err);

    for (unsigned i = 0; rc == GD_OK && i < size; i++) { /* most significant byte first here */
        bits = bits << 8 | bytes[i];
    }
    memcpy(&token->real, &bits, sizeof(bits));
    return rc;
}

#define IS_SIGNED 0x20u /* the length of a string, in the other bits of the size */

static int read_string(struct pickle_input *input, unsigned size, struct pickle_token *token,
                       struct gd_err *err)
{
    const unsigned char *bytes;
    uint64_t len;
    int rc = pickle_take(input, size & ~IS_SIGNED, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    len = gd_little_endian(bytes, size & ~IS_SIGNED);
    if (size & IS_SIGNED && len > INT32_MAX) {
        return fail_broken(input, err, "a string with a negative length");
    }
    rc = pickle_take(input, len, &bytes, err);
    token->text = (const char *)bytes;
    token->len = (uint32_t)len;
    return rc;
}

static int read_line(struct pickle_input *input, unsigned size, struct pickle_token *token,
                     struct gd_err *err)
{
    (void)size;
    return pickle_take_line(input, &token->text, &token->len, err);
}

static int read_two_lines(struct pickle_input *input, unsigned size, struct pickle_token *token,
                          struct gd_err *err)
{
    int rc = read_line(input, size, token, err);

    input->keep = (size_t)token->len + 1;
    rc = rc != GD_OK ? rc : pickle_take_line(input, &token->name, &token->name_len, err);
    input->keep = 0;
    token->text = rc != GD_OK ? token->text : token->name - 1 - token->len;
    return rc;
}

static int read_key(struct pickle_input *input, unsigned size, struct pickle_token *token,
                    struct gd_err *err)
{
    const unsigned char *bytes;
    int rc = pickle_take(input, size, &bytes, err);

    token->key = rc != GD_OK ? 0 : gd_little_endian(bytes, size);
    return rc;
}

static int read_key_line(struct pickle_input *input, unsigned size, struct pickle_token *token,
                         struct gd_err *err)
{
    int rc = read_line(input, size, token, err);

    token->key = 0;
    for (uint32_t i = 0; rc == GD_OK && i < token->len; i++) {
        if (token->text[i] < '0' || token->text[i] > '9' || token->len > 18) {
            return fail_broken(input, err, "an invalid memo number");
        }
        token->key = token->key * 10 + (uint64_t)(token->text[i] - '0');
    }
    return rc;
}

/* ---- opcodes --------------------------------------------------------------------------------- */

static const struct opcode {
    enum pickle_op op;
    unsigned how;
    operand_fn read; /* NULL: no operand */
    unsigned size;   /* bytes of the operand, or of its length */
} opcodes[256] = {
    [0x80] = {PICKLE_NOTHING, 0, read_proto, 1},
    [0x95] = {PICKLE_NOTHING, 0, read_frame, 8},
    ['.'] = {PICKLE_STOP, 0, NULL, 0},
    ['('] = {PICKLE_MARK, 0, NULL, 0},
    ['0'] = {PICKLE_POP, 0, NULL, 0},
    ['1'] = {PICKLE_POP_MARK, 0, NULL, 0},
    ['2'] = {PICKLE_DUP, 0, NULL, 0},
    ['N'] = {PICKLE_NONE, 0, NULL, 0},
    [0x88] = {PICKLE_BOOL, 1, NULL, 0},
    [0x89] = {PICKLE_BOOL, 0, NULL, 0},
    ['J'] = {PICKLE_INT, 0, read_int, 4},
    ['K'] = {PICKLE_INT, 0, read_int, 1},
    ['M'] = {PICKLE_INT, 0, read_int, 2},
    [0x8a] = {PICKLE_INT, 0, read_long, 1},
    [0x8b] = {PICKLE_INT, 0, read_long, 4},
    ['I'] = {PICKLE_LINE, 'I', read_line, 0},
    ['L'] = {PICKLE_LINE, 'L', read_line, 0},
    ['F'] = {PICKLE_LINE, 'F', read_line, 0},
    ['S'] = {PICKLE_LINE, 'S', read_line, 0},
    ['V'] = {PICKLE_LINE, 'V', read_line, 0},
    ['G'] = {PICKLE_FLOAT, 0, read_float, 8},
    ['X'] = {PICKLE_STRING, GD_PICKLE_TEXT, read_string, 4},
    [0x8c] = {PICKLE_STRING, GD_PICKLE_TEXT, read_string, 1},
    [0x8d] = {PICKLE_STRING, GD_PICKLE_TEXT, read_string, 8},
    ['U'] = {PICKLE_STRING, GD_PICKLE_TEXT, read_string, 1},
    ['T'] = {PICKLE_STRING, GD_PICKLE_TEXT, read_string, 4 | IS_SIGNED},
    ['C'] = {PICKLE_STRING, GD_PICKLE_BYTES, read_string, 1},
    ['B'] = {PICKLE_STRING, GD_PICKLE_BYTES, read_string, 4},
    [0x8e] = {PICKLE_STRING, GD_PICKLE_BYTES, read_string, 8},
    [0x96] = {PICKLE_STRING, GD_PICKLE_BYTES, read_string, 8},
    [']'] = {PICKLE_EMPTY, GD_PICKLE_LIST, NULL, 0},
    [')'] = {PICKLE_EMPTY, GD_PICKLE_TUPLE, NULL, 0},
    ['}'] = {PICKLE_EMPTY, GD_PICKLE_DICT, NULL, 0},
    [0x8f] = {PICKLE_EMPTY, GD_PICKLE_SET, NULL, 0},
    ['l'] = {PICKLE_COLLECT, GD_PICKLE_LIST, NULL, 0},
    ['t'] = {PICKLE_COLLECT, GD_PICKLE_TUPLE, NULL, 0},
    ['d'] = {PICKLE_COLLECT, GD_PICKLE_DICT, NULL, 0},
    [0x91] = {PICKLE_COLLECT, GD_PICKLE_SET, NULL, 0},
    [0x85] = {PICKLE_TUPLE, 1, NULL, 0},
    [0x86] = {PICKLE_TUPLE, 2, NULL, 0},
    [0x87] = {PICKLE_TUPLE, 3, NULL, 0},
    ['a'] = {PICKLE_PUT_ONE, GD_PICKLE_LIST, NULL, 0},
    ['s'] = {PICKLE_PUT_ONE, GD_PICKLE_DICT, NULL, 0},
    ['e'] = {PICKLE_PUT_MANY, GD_PICKLE_LIST, NULL, 0},
    ['u'] = {PICKLE_PUT_MANY, GD_PICKLE_DICT, NULL, 0},
    [0x90] = {PICKLE_PUT_MANY, GD_PICKLE_SET, NULL, 0},
    ['q'] = {PICKLE_MEMO_PUT, 0, read_key, 1},
    ['r'] = {PICKLE_MEMO_PUT, 0, read_key, 4},
    ['p'] = {PICKLE_MEMO_PUT, 0, read_key_line, 0},
    [0x94] = {PICKLE_MEMOIZE, 0, NULL, 0},
    ['h'] = {PICKLE_MEMO_GET, 0, read_key, 1},
    ['j'] = {PICKLE_MEMO_GET, 0, read_key, 4},
    ['g'] = {PICKLE_MEMO_GET, 0, read_key_line, 0},
    ['c'] = {PICKLE_GLOBAL, 0, read_two_lines, 0},
    [0x93] = {PICKLE_STACK_GLOBAL, 0, NULL, 0},
    ['R'] = {PICKLE_CALL, 2, NULL, 0},
    [0x81] = {PICKLE_CALL, 2, NULL, 0},
    [0x92] = {PICKLE_CALL, 3, NULL, 0},
    ['b'] = {PICKLE_BUILD, 0, NULL, 0},
    ['Q'] = {PICKLE_BINPERSID, 0, NULL, 0},
    ['P'] = {PICKLE_PERSID, 0, read_line, 0},
    ['o'] = {PICKLE_REFUSED, 0, NULL, 0},           /* OBJ */
    ['i'] = {PICKLE_REFUSED, 0, read_two_lines, 0}, /* INST */
    [0x82] = {PICKLE_REFUSED, 0, NULL, 0},          /* EXT1, EXT2, EXT4 */
    [0x83] = {PICKLE_REFUSED, 0, NULL, 0},
    [0x84] = {PICKLE_REFUSED, 0, NULL, 0},
    [0x97] = {PICKLE_REFUSED, 0, NULL, 0}, /* NEXT_BUFFER, READONLY_BUFFER */
    [0x98] = {PICKLE_REFUSED, 0, NULL, 0},
};

const char *pickle_opcode_name(unsigned char opcode)
{
    switch (opcode) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 'b': return "BUILD";
    case 'Q': return "BINPERSID";
    case 'P': return "PERSID";
    case 'o': return "OBJ";
    case 'i': return "INST";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return "";
    }
}

int pickle_next(struct pickle_input *input, struct pickle_token *ret, struct gd_err *err)
{
    const struct opcode *opcode;
    const unsigned char *byte;
    int rc;

    input->opcode = input->offset;
    if (input->at == input->end && !input->left) {
        return fail_broken(input, err, "the pickle has no STOP");
    }
    rc = pickle_take(input, 1, &byte, err);
    if (rc != GD_OK) {
        return rc;
    }
    opcode = &opcodes[*byte];
    ret->op = opcode->op;
    ret->how = opcode->how;
    ret->opcode = *byte;
    if (opcode->read) {
        return opcode->read(input, opcode->size, ret, err);
    }
    if (opcode->op == PICKLE_NOTHING) {
        return pickle_fail(input, err, GD_EPROTO, "0x%02x is not a pickle opcode", *byte);
    }
    return GD_OK;
}
