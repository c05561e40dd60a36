// SPDX-License-Identifier: GPL-3.0-or-later
/* Name maps given by the user. The file is untrusted. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "compare/match.h"
#include "dump/io/disk.h"
#include "engine/hash_index.h"

#define MAX_BYTES ((size_t)64 << 20)
#define MAX_PAIRS 1000000
#define MAX_NAME  4096

struct pair {
    const char *a, *b;
};

struct gd_map {
    struct pair *pair;
    size_t count, room;
    bool parts; /* read from lines: parts of names may be replaced */
    struct gd_hash_index by_a, by_b;
    struct gd_arena arena;
};

void gd_map_free(struct gd_map *map)
{
    if (!map) {
        return;
    }
    free(map->pair);
    gd_hash_index_deinit(&map->by_a);
    gd_hash_index_deinit(&map->by_b);
    gd_arena_deinit(&map->arena);
    free(map);
}

size_t gd_map_count(const struct gd_map *map)
{
    return map->count;
}

void gd_map_pair(const struct gd_map *map, size_t index, const char **a, const char **b)
{
    *a = map->pair[index].a;
    *b = map->pair[index].b;
}

static const struct pair *find_pair(const struct gd_map *map, const char *name, size_t len,
                                    bool back)
{
    /* not const: the first hash sets the seed */
    struct gd_hash_index *lookup = (struct gd_hash_index *)(back ? &map->by_b : &map->by_a);
    uint64_t hash = gd_hash_index_hash(lookup, name, len);
    uint32_t number;
    size_t at = 0;

    while (gd_hash_index_next(lookup, hash, &at, &number)) {
        const char *has = back ? map->pair[number].b : map->pair[number].a;

        if (strlen(has) == len && memcmp(has, name, len) == 0) {
            return &map->pair[number];
        }
    }
    return NULL;
}

static int check_name(const char *name, size_t len, struct gd_err *err)
{
    if (len == 0 || len > MAX_NAME) {
        return gd_fail(err, len ? GD_ELIMIT : GD_EPROTO,
                       len ? "a name of the map is longer than %d bytes"
                           : "a name of the map is empty",
                       MAX_NAME);
    }
    if (memchr(name, '\0', len)) {
        return gd_fail(err, GD_EPROTO, "a name of the map contains a NUL");
    }
    return GD_OK;
}

static int add_pair(struct gd_map *map, const char *a, size_t len_a, const char *b, size_t len_b,
                    struct gd_err *err)
{
    const struct pair *known;
    struct pair pair;
    int rc = check_name(a, len_a, err);

    rc = rc == GD_OK ? check_name(b, len_b, err) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    known = find_pair(map, a, len_a, false);
    if (known && map->parts && strlen(known->b) == len_b && memcmp(known->b, b, len_b) == 0) {
        return GD_OK; /* shared by layers of two classes */
    }
    if (known) {
        return gd_fail(err, GD_EPROTO, "the map has \"%.*s\" twice",
                       (int)(len_a < 200 ? len_a : 200), a);
    }
    if (map->count >= MAX_PAIRS) {
        return gd_fail(err, GD_ELIMIT, "the map has more than %d names", MAX_PAIRS);
    }
    pair.a = gd_arena_strndup(&map->arena, a, len_a);
    pair.b = gd_arena_strndup(&map->arena, b, len_b);
    if (!pair.a || !pair.b ||
        !gd_grow_list(&map->pair, map->count, &map->room, sizeof(*map->pair))) {
        return gd_fail_nomem(err);
    }
    map->pair[map->count] = pair;
    rc = gd_hash_index_add(&map->by_a, gd_hash_index_hash(&map->by_a, a, len_a),
                           (uint32_t)map->count, err);
    if (rc == GD_OK && !find_pair(map, b, len_b, true)) { /* the first of several */
        rc = gd_hash_index_add(&map->by_b, gd_hash_index_hash(&map->by_b, b, len_b),
                               (uint32_t)map->count, err);
    }
    map->count++;
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int add_object(struct gd_map *map, const cJSON *object, struct gd_err *err)
{
    const cJSON *member;
    int rc = GD_OK;

    cJSON_ArrayForEach(member, object)
    {
        if (!cJSON_IsString(member)) {
            return gd_fail(err, GD_EPROTO,
                           "\"%.200s\" in the map is not a name: write \"A\": \"B\"",
                           member->string);
        }
        rc = add_pair(map, member->string, strlen(member->string), member->valuestring,
                      strlen(member->valuestring), err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return rc;
}

/* TroubleShooter's second object names functions that convert parameters. Its own one adds an axis
 * of size 1 to a Conv1d's weight, which comparisons ignore anyway; what another one does cannot be
 * known from its name, so it is refused. */
static int check_converters(const struct gd_map *map, const cJSON *object, struct gd_err *err)
{
    static const char *const known = "weight_adapter.trans_conv1d_weight_value";
    const cJSON *member;

    if (object && !cJSON_IsObject(object)) {
        return gd_fail(err, GD_EPROTO, "the converters of the map must be an object of names");
    }
    cJSON_ArrayForEach(member, object)
    {
        const char *name = cJSON_GetStringValue(member);
        size_t len = name ? strlen(name) : 0, end = strlen(known);

        if (!find_pair(map, member->string, strlen(member->string), false)) {
            return gd_fail(err, GD_EPROTO,
                           "the map has a converter for \"%.200s\", which it does not name",
                           member->string);
        }
        if (name && name[0] && (len < end || strcmp(name + len - end, known) != 0)) {
            return gd_fail(err, GD_EUNSUPPORTED,
                           "the map converts \"%.100s\" with the function %.200s: convert the file "
                           "first, and remove the second object",
                           member->string, name);
        }
    }
    return GD_OK;
}

static int read_json(struct gd_map *map, const char *text, size_t size, struct gd_err *err)
{
    cJSON *json = cJSON_ParseWithLength(text, size);
    const cJSON *object = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, 0) : json;
    int rc;

    if (!json) {
        const char *at = cJSON_GetErrorPtr();
        size_t line = 1;

        for (const char *p = text; at && p < at && p < text + size; p++) {
            line += *p == '\n';
        }
        return gd_fail(err, GD_EPROTO, "the map is not valid JSON: line %zu", line);
    }
    if (!cJSON_IsObject(object) || (cJSON_IsArray(json) && cJSON_GetArraySize(json) > 2)) {
        rc = gd_fail(err, GD_EPROTO,
                     "the map must be {\"A\": \"B\", ...} or a list of that and an object of "
                     "converters");
    } else {
        rc = add_object(map, object, err);
        if (rc == GD_OK && cJSON_IsArray(json)) {
            rc = check_converters(map, cJSON_GetArrayItem(json, 1), err);
        }
    }
    cJSON_Delete(json);
    return rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct span {
    const char *at;
    size_t len;
};

static struct span trim_span(const char *at, size_t len)
{
    while (len > 0 && isspace((unsigned char)*at)) {
        at++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)at[len - 1])) {
        len--;
    }
    if (len >= 2 && (*at == '"' || *at == '\'') && at[len - 1] == *at) {
        at++;
        len -= 2;
    }
    return (struct span){at, len};
}

/* The colon that ends a key: one before a blank or the end of the line. */
static size_t colon_of(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i] == ':' && (i + 1 == len || isspace((unsigned char)at[i + 1]))) {
            return i;
        }
    }
    return len;
}

/* ---- operators of msprobe -------------------------------------------------------------------- */

/* An entry of the list: "- ms_api: X", "pt_api: Y", and the corresponding arguments of both. */
enum { API, ARGS, OUTPUTS, PARAMETERS, PARAMETER_GRADIENTS, API_KEYS };
struct operators {
    bool open;
    size_t line; /* where it begins */
    struct span key[2][API_KEYS];
};

/* Whether the words of both lists are equal; blanks do not count. */
static bool is_alike(struct span a, struct span b)
{
    size_t i = 0, j = 0;

    for (;;) {
        while (i < a.len && isspace((unsigned char)a.at[i])) {
            i++;
        }
        while (j < b.len && isspace((unsigned char)b.at[j])) {
            j++;
        }
        if (i == a.len || j == b.len) {
            return i == a.len && j == b.len;
        }
        if (a.at[i++] != b.at[j++]) {
            return false;
        }
    }
}

static int end_operators(struct gd_map *map, struct operators *o, struct gd_err *err)
{
    const struct span *a = o->key[0], *b = o->key[1];

    if (!o->open) {
        return GD_OK;
    }
    o->open = false;
    if (a[API].len == 0 || b[API].len == 0) {
        return gd_fail(err, GD_EPROTO, "the operators at line %zu of the map lack ms_api or pt_api",
                       o->line);
    }
    for (int i = ARGS; i < API_KEYS; i++) {
        if (!is_alike(a[i], b[i])) {
            return gd_fail(err, GD_EUNSUPPORTED,
                           "the operators at line %zu of the map have their arguments in different "
                           "orders, which is not supported: %.*s and %.*s",
                           o->line, (int)(a[i].len < 60 ? a[i].len : 60), a[i].len ? a[i].at : "",
                           (int)(b[i].len < 60 ? b[i].len : 60), b[i].len ? b[i].at : "");
        }
    }
    return add_pair(map, a[API].at, a[API].len, b[API].at, b[API].len, err);
}

/* False: not one of its keys. */
static bool take_key(struct operators *o, struct span key, struct span value)
{
    static const char *const sides[2] = {"ms_", "pt_"};
    static const char *const names[API_KEYS] = {"api", "args", "outputs", "parameters",
                                                "parameters_grad"};

    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < API_KEYS; i++) {
            size_t len = strlen(names[i]);

            if (key.len == len + 3 && memcmp(key.at, sides[side], 3) == 0 &&
                memcmp(key.at + 3, names[i], len) == 0) {
                o->key[side][i] = value;
                return true;
            }
        }
    }
    return false;
}

/* ---- lines, one by one ----------------------------------------------------------------------- */

static int add_names(struct gd_map *map, struct span key, struct span value, size_t line,
                     struct gd_err *err)
{
    if (value.len == 0) {
        return GD_OK; /* a layer's class: what follows is in it */
    }
    if (strchr("&*!{[|>", value.at[0])) {
        return gd_fail(err, GD_EPROTO,
                       "line %zu of the map: a colon must be followed by names only", line);
    }
    return add_pair(map, key.at, key.len, value.at, value.len, err);
}

static int read_line(struct gd_map *map, struct operators *o, struct span whole, size_t line,
                     struct gd_err *err)
{
    bool begins = whole.len > 1 && whole.at[0] == '-' && isspace((unsigned char)whole.at[1]);
    struct span key, value;
    size_t colon;
    int rc = GD_OK;

    if (whole.len == 0 || whole.at[0] == '#') {
        return GD_OK;
    }
    if (begins) {
        rc = end_operators(map, o, err);
        *o = (struct operators){.open = true, .line = line};
        whole = trim_span(whole.at + 1, whole.len - 1);
    }
    colon = colon_of(whole.at, whole.len);
    if (rc == GD_OK && (colon == whole.len || strchr("-&*!{[|>%", whole.at[0]))) {
        rc = gd_fail(err, GD_EPROTO, "line %zu of the map is not \"A: B\": %.*s", line,
                     (int)(whole.len < 120 ? whole.len : 120), whole.at);
    }
    if (rc != GD_OK) {
        return rc;
    }
    key = trim_span(whole.at, colon);
    value = trim_span(whole.at + colon + 1, whole.len - colon - 1);
    if (!o->open) {
        return add_names(map, key, value, line, err);
    }
    return take_key(o, key, value) ? GD_OK
                                   : gd_fail(err, GD_EPROTO,
                                             "line %zu of the map: ms_api, pt_api, ms_args and "
                                             "the like are keys of operators",
                                             line);
}

static int read_lines(struct gd_map *map, const char *text, size_t size, struct gd_err *err)
{
    struct operators operators = {.open = false};
    size_t line = 0;
    int rc = GD_OK;

    map->parts = true;
    for (size_t at = 0; rc == GD_OK && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t len = end ? (size_t)(end - text) - at : size - at;

        rc = read_line(map, &operators, trim_span(text + at, len), ++line, err);
        at += len + 1;
    }
    return rc == GD_OK ? end_operators(map, &operators, err) : rc;
}

int gd_map_parse(const char *text, size_t size, struct gd_map **ret, struct gd_err *err)
{
    struct gd_map *map = calloc(1, sizeof(*map));
    size_t start = 0;
    int rc;

    if (!map) {
        return gd_fail_nomem(err);
    }
    gd_arena_init(&map->arena, 0);
    while (start < size && isspace((unsigned char)text[start])) {
        start++;
    }
    rc = start < size && (text[start] == '{' || text[start] == '[')
             ? read_json(map, text, size, err)
             : read_lines(map, text, size, err);
    if (rc == GD_OK && map->count == 0) {
        rc =
            gd_fail(err, GD_EPROTO, "the map has no names: write {\"A\": \"B\"}, or lines of A: B");
    }
    if (rc != GD_OK) {
        gd_map_free(map);
        return rc;
    }
    *ret = map;
    return GD_OK;
}

int gd_map_read(const char *path, struct gd_map **ret, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_file_text text;
    struct gd_err why = {.text = ""};
    int rc = gd_disk_open(AT_FDCWD, path, true, &disk, err);

    rc = rc != GD_OK ? rc : gd_disk_read_text(disk, MAX_BYTES, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_map_parse(text.data, text.size, ret, &why);
    free(text.data);
    return rc != GD_OK ? gd_fail(err, rc, "%.200s: %.280s", path, why.text) : GD_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool replace_part(const char *name, const char *part, const char *other, char *ret,
                         size_t size)
{
    const char *at = strstr(name, part);
    size_t before, len = strlen(part), more = strlen(other), rest;

    if (!at) {
        return false;
    }
    before = (size_t)(at - name);
    rest = strlen(at + len);
    if (before + more + rest >= size) {
        return false;
    }
    memcpy(ret, name, before);
    memcpy(ret + before, other, more);
    memcpy(ret + before + more, at + len, rest + 1);
    return true;
}

bool gd_map_name(const struct gd_map *map, const char *name, bool back, char *ret, size_t size)
{
    const struct pair *pair = find_pair(map, name, strlen(name), back);

    if (pair) {
        const char *other = back ? pair->a : pair->b;

        return replace_part(other, other, other, ret, size);
    }
    for (size_t i = 0; map->parts && i < map->count; i++) {
        const char *from = back ? map->pair[i].b : map->pair[i].a;

        if (replace_part(name, from, back ? map->pair[i].a : map->pair[i].b, ret, size)) {
            return true;
        }
    }
    return false;
}
