// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_file_name.h"

#include <string.h>

#define MAX_DTYPE 48

bool gd_ms_number(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;

    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');

        if (text[i] < '0' || text[i] > '9' || value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

static bool is_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    return len > 0;
}

void gd_ms_escape(const char *name, char *out, size_t size)
{
    size_t len = 0;

    for (; *name && len + 1 < size; name++) {
        out[len++] = strchr("/\\. ", *name) ? '_' : *name;
    }
    if (size > 0) {
        out[len] = '\0';
    }
}

const char *gd_ms_short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *start = slash ? slash + 1 : name;

    for (const char *dash = strstr(start, "--"); dash; dash = strstr(start, "--")) {
        start = dash + 2;
    }
    return start;
}

/* "kNumberTypeFloat32", "Float32", "float32" */
static enum gd_stored stored_of(const char *text, size_t len)
{
    static const char label[] = "kNumberType";
    char word[MAX_DTYPE];

    if (len > sizeof(label) - 1 && memcmp(text, label, sizeof(label) - 1) == 0) {
        text += sizeof(label) - 1;
        len -= sizeof(label) - 1;
    }
    if (len == 0 || len >= sizeof(word)) {
        return GD_STORED_NONE;
    }
    memcpy(word, text, len);
    word[len] = '\0';
    return gd_stored_from_name(word);
}

/* ---- since 1.3 ------------------------------------------------------------------------------- */

struct fields { /* split from the right: [0] is the last */
    const char *at[9];
    size_t len[9];
    int count;
    const char *rest; /* the text before them */
    size_t rest_len;
};

static void split_fields(const char *text, size_t len, struct fields *ret)
{
    ret->count = 0;
    while (ret->count < 9) {
        size_t start = len;

        while (start > 0 && text[start - 1] != '.') {
            start--;
        }
        if (start == 0) {
            break;
        }
        ret->at[ret->count] = text + start;
        ret->len[ret->count++] = len - start;
        len = start - 1;
    }
    ret->rest = text;
    ret->rest_len = len;
}

static bool is_word(const struct fields *fields, int i, const char *word)
{
    return i < fields->count && fields->len[i] == strlen(word) &&
           memcmp(fields->at[i], word, fields->len[i]) == 0;
}

static bool is_io(const struct fields *fields, int i)
{
    return is_word(fields, i, "input") || is_word(fields, i, "output");
}

static int64_t id_of(const struct fields *fields, int i)
{
    uint64_t id;

    return gd_ms_number(fields->at[i], fields->len[i], INT64_MAX, &id) ? (int64_t)id : INT64_MAX;
}

/* Fields [i] and following are io, time, stream, task. */
static bool parse_middle(const struct fields *fields, int i, struct gd_ms_name *ret)
{
    uint64_t slot;

    if (i + 3 >= fields->count || !is_io(fields, i) ||
        !gd_ms_number(fields->at[i - 1], fields->len[i - 1], GD_MS_MAX_SLOT, &slot) ||
        !is_digits(fields->at[i + 1], fields->len[i + 1]) || fields->len[i + 1] > 255 ||
        !is_digits(fields->at[i + 2], fields->len[i + 2]) ||
        !is_digits(fields->at[i + 3], fields->len[i + 3])) {
        return false;
    }
    ret->is_input = is_word(fields, i, "input");
    ret->slot = (uint32_t)slot;
    if (!gd_ms_number(fields->at[i + 1], fields->len[i + 1], UINT64_MAX, &ret->time)) {
        ret->time = 0;
    }
    ret->stream = id_of(fields, i + 2);
    ret->task = id_of(fields, i + 3);
    return true;
}

bool gd_ms_name_parse(const char *text, struct gd_ms_name *ret)
{
    size_t len = strlen(text);
    struct fields fields;
    const char *end, *dot;
    int io;

    if (len > 4 && strcmp(text + len - 4, ".npy") == 0) {
        len -= 4;
    }
    split_fields(text, len, &fields);
    *ret = (struct gd_ms_name){.stored = GD_STORED_NONE};
    io = is_io(&fields, 2) ? 2 : is_io(&fields, 3) ? 3 : -1;
    if (io < 0 || !parse_middle(&fields, io, ret)) {
        return false;
    }
    ret->format = fields.at[io - 2];
    ret->format_len = fields.len[io - 2];
    if (io == 3) {
        ret->stored = stored_of(fields.at[0], fields.len[0]);
    }
    end = fields.at[io + 3] - 1; /* the dot after the operator's name */
    dot = memchr(text, '.', (size_t)(end - text));
    if (!dot || dot == text) {
        return false;
    }
    ret->type = text;
    ret->type_len = (size_t)(dot - text);
    ret->name = dot + 1;
    ret->name_len = (size_t)(end - ret->name);
    return true;
}

/* ---- 1.0 to 1.2 ------------------------------------------------------------------------------ */

/* Formats that contain a _; any other begins after the last one. */
static size_t format_start(const char *text, size_t len)
{
    static const char *const known[] = {"FRACTAL_Z",      "FRACTAL_NZ",   "NC1HWC0_C04",
                                        "FRACTAL_Z_C04",  "FRACTAL_Z_3D", "FRACTAL_ZN_LSTM",
                                        "FRACTAL_ZN_RNN", "ND_RNN_BIAS"};
    size_t start = len;
    size_t longest = 0;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t size = strlen(known[i]);

        if (size > longest && len > size && text[len - size - 1] == '_' &&
            memcmp(text + len - size, known[i], size) == 0) {
            longest = size;
        }
    }
    if (longest) {
        return len - longest;
    }
    while (start > 0 && text[start - 1] != '_') {
        start--;
    }
    return start;
}

/* The field that ends at *len; moves *len before the preceding _. */
static bool last_field(const char *text, size_t *len, const char **ret, size_t *ret_len)
{
    size_t start = *len;

    while (start > 0 && text[start - 1] != '_') {
        start--;
    }
    if (start == 0) {
        return false;
    }
    *ret = text + start;
    *ret_len = *len - start;
    *len = start - 1;
    return true;
}

/* Parses dimensions from the right up to the word "shape", so in reverse order. */
static bool parse_shape(const char *text, size_t *len, struct gd_shape *ret)
{
    const char *field;
    size_t size;
    uint64_t dim;
    int rank = 0;

    *ret = (struct gd_shape){.rank = 0};
    while (last_field(text, len, &field, &size)) {
        if (size == 5 && memcmp(field, "shape", 5) == 0) {
            ret->rank = rank;
            for (int i = 0; i < rank / 2; i++) {
                int64_t other = ret->dim[i];

                ret->dim[i] = ret->dim[rank - 1 - i];
                ret->dim[rank - 1 - i] = other;
            }
            return rank > 0;
        }
        if (rank == GD_MAX_RANK || !gd_ms_number(field, size, INT64_MAX, &dim)) {
            return false;
        }
        ret->dim[rank++] = (int64_t)dim;
    }
    return false;
}

bool gd_ms_bin_name_parse(const char *text, struct gd_ms_bin_name *ret)
{
    size_t len = strlen(text), size, start;
    const char *field;
    uint64_t slot;

    *ret = (struct gd_ms_bin_name){.stored = GD_STORED_NONE};
    if (len < 4 || strcmp(text + len - 4, ".bin") != 0) {
        return false;
    }
    len -= 4;
    start = format_start(text, len);
    if (start < 2) {
        return false;
    }
    ret->format = text + start;
    ret->format_len = len - start;
    len = start - 1;
    if (!last_field(text, &len, &field, &size)) {
        return false;
    }
    ret->stored = stored_of(field, size);
    if (!parse_shape(text, &len, &ret->shape) || !last_field(text, &len, &field, &size) ||
        !gd_ms_number(field, size, GD_MS_MAX_SLOT, &slot) ||
        !last_field(text, &len, &field, &size)) {
        return false;
    }
    ret->slot = (uint32_t)slot;
    ret->is_input = size == 5 && memcmp(field, "input", 5) == 0;
    ret->name = text;
    ret->name_len = len;
    return len > 0 && (ret->is_input || (size == 6 && memcmp(field, "output", 6) == 0));
}
