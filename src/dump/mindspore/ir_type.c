// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ir_type.h"

#include <stdlib.h>
#include <string.h>

#include "dump/io/stored_type.h"

#define MAX_DIM INT64_C(1000000000000)

/* Bytes up to where the nesting falls to `until`. All kinds of brackets count alike; those in
 * double quotes and in arrows do not. */
static size_t walk_brackets(const char *text, int until, bool at_comma)
{
    bool quoted = false;
    int depth = 0;
    size_t i;

    for (i = 0; text[i]; i++) {
        if (text[i] == '"') {
            quoted = !quoted;
        } else if (quoted) {
            continue;
        } else if (strchr("([{<", text[i])) {
            depth++;
        } else if (strchr(")]}>", text[i]) && !(text[i] == '>' && i > 0 && text[i - 1] == '-')) {
            if (--depth <= until) {
                return until < 0 ? i : i + 1;
            }
        } else if (at_comma && depth == 0 && text[i] == ',') {
            return i;
        }
    }
    return until < 0 ? i : 0;
}

size_t gd_ir_bracket(const char *text)
{
    return *text && strchr("([{<", *text) ? walk_brackets(text, 0, false) : 0;
}

size_t gd_ir_item(const char *text)
{
    return walk_brackets(text, -1, true);
}

static bool take_dims(const char *text, const char *end, char close, struct gd_shape *ret)
{
    *ret = (struct gd_shape){.rank = 0};
    while (text < end && *text != close) {
        char *after;
        long long dim;

        text += strspn(text, " ,");
        if (*text == close) {
            break;
        }
        dim = strtoll(text, &after, 10);
        if (after == text || ret->rank == GD_MAX_RANK || dim > MAX_DIM) {
            return false;
        }
        ret->dim[ret->rank++] = dim < 0 ? -1 : dim;
        text = after;
    }
    return text < end;
}

/* Parses one "<...>" at text: its type, and its shape in either spelling. */
static void take_type(const char *text, const char *end, struct gd_output *ret)
{
    const char *type = strstr(text, "Tensor["), *dims;
    char name[32];
    size_t len;

    *ret = (struct gd_output){.dtype = GD_DT_NONE};
    if (!type || type >= end) {
        return;
    }
    type += 7;
    len = strcspn(type, "],");
    if (len >= sizeof(name)) {
        return;
    }
    memcpy(name, type, len);
    name[len] = '\0';
    ret->dtype = gd_stored_dtype(gd_stored_from_name(name));
    dims = strstr(type, "], (");
    if (dims && dims < end) {
        dims += 4;
    } else {
        dims = strstr(type, "[const vector][");
        dims = dims && dims < end ? dims + 15 : NULL;
    }
    if (!dims || !take_dims(dims, end, dims[-1] == '(' ? ')' : ']', &ret->shape)) {
        ret->dtype = GD_DT_NONE; /* unknown shape: give neither */
        ret->shape = (struct gd_shape){.rank = 0};
    }
}

uint32_t gd_ir_types(const char *text, size_t len, struct gd_output *ret)
{
    const char *end = text + len;
    uint32_t count = 0;

    while (count < GD_IR_MAX_OUTPUTS && text < end && (text = strchr(text, '<')) && text < end) {
        size_t size = gd_ir_bracket(text);

        if (size == 0) {
            break;
        }
        take_type(text, text + size, &ret[count++]);
        text += size;
    }
    return count;
}
