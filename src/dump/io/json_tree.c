// SPDX-License-Identifier: GPL-3.0-or-later
/* Builds a cJSON tree from tokens. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/json.h"
#include "engine/hash_index.h"

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_NODES ((size_t)8000000)

/* The keys of one object: a hash table that grows with its members. */
struct keys {
    cJSON **slot; /* open addressing; NULL: free */
    size_t slots, count;
};

struct building {
    struct gd_json json;
    const struct gd_json_options *options;
    struct gd_err *err;
    cJSON *open[GD_JSON_MAX_DEPTH];
    struct keys keys[GD_JSON_MAX_DEPTH];
    struct gd_hash_index seeded; /* always empty: only its seeded hash is used */
    int depth;
    cJSON *root;
    char *key; /* of the next value */
    size_t nodes;
};

/* All objects of a text share one seed. */
static cJSON **slot_of(struct building *b, const struct keys *keys, const char *key)
{
    size_t at = (size_t)gd_hash_index_hash(&b->seeded, key, strlen(key)) & (keys->slots - 1);

    while (keys->slot[at] && strcmp(keys->slot[at]->string, key) != 0) {
        at = (at + 1) & (keys->slots - 1);
    }
    return &keys->slot[at];
}

static bool grow_keys(struct building *b, struct keys *keys)
{
    struct keys grown = {.slots = keys->slots ? keys->slots * 2 : 16, .count = keys->count};

    grown.slot = calloc(grown.slots, sizeof(*grown.slot));
    if (!grown.slot) {
        return false;
    }
    for (size_t i = 0; i < keys->slots; i++) {
        if (keys->slot[i]) {
            *slot_of(b, &grown, keys->slot[i]->string) = keys->slot[i];
        }
    }
    free(keys->slot);
    *keys = grown;
    return true;
}

static int add_member(struct building *b, cJSON *parent, cJSON *node, size_t at)
{
    struct keys *keys = &b->keys[b->depth - 1];
    cJSON **slot;

    node->string = b->key;
    b->key = NULL;
    if ((keys->count + 1) * 2 > keys->slots && !grow_keys(b, keys)) {
        cJSON_Delete(node);
        return gd_fail_nomem(b->err);
    }
    slot = slot_of(b, keys, node->string);
    if (*slot && b->options->unique) {
        gd_json_fail(&b->json, at, GD_EPROTO, b->err, "duplicate key \"%.80s\"", node->string);
        cJSON_Delete(node);
        return GD_EPROTO;
    }
    if (*slot) {
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, *slot)); /* of duplicates the last counts */
    } else {
        keys->count++;
    }
    *slot = node;
    cJSON_AddItemToArray(parent, node);
    return GD_OK;
}

/* Takes over the node, also on failure. */
static int add_node(struct building *b, cJSON *node, size_t at)
{
    cJSON *parent = b->depth ? b->open[b->depth - 1] : NULL;

    if (!node) {
        return gd_fail_nomem(b->err);
    }
    if (++b->nodes > (b->options->max_nodes ? b->options->max_nodes : MAX_NODES)) {
        cJSON_Delete(node);
        return gd_json_fail(&b->json, at, GD_ELIMIT, b->err, "JSON with more than %zu values",
                            b->nodes - 1);
    }
    if (!parent) {
        b->root = node;
        return GD_OK;
    }
    if (cJSON_IsObject(parent)) {
        return add_member(b, parent, node, at);
    }
    cJSON_AddItemToArray(parent, node);
    return GD_OK;
}

static cJSON *number_node(const char *text)
{
    cJSON *node = cJSON_CreateNumber(strcmp(text, "NaN") == 0 ? NAN : strtod(text, NULL));

    if (node) {
        node->valuestring = cJSON_malloc(strlen(text) + 1);
        if (!node->valuestring) {
            cJSON_Delete(node);
            return NULL;
        }
        memcpy(node->valuestring, text, strlen(text) + 1);
    }
    return node;
}

static int open_node(struct building *b, cJSON *node, size_t at)
{
    int rc = add_node(b, node, at);

    if (rc == GD_OK) {
        b->keys[b->depth] = (struct keys){NULL, 0, 0};
        b->open[b->depth++] = node;
    }
    return rc;
}

static int take_key(struct building *b, const struct gd_json_token *token)
{
    b->key = cJSON_malloc(token->size + 1);
    if (!b->key) {
        return gd_fail_nomem(b->err);
    }
    memcpy(b->key, token->text, token->size + 1);
    return GD_OK;
}

static int take_token(struct building *b, const struct gd_json_token *token)
{
    switch (token->kind) {
    case GD_JSON_OBJECT: return open_node(b, cJSON_CreateObject(), token->at);
    case GD_JSON_ARRAY: return open_node(b, cJSON_CreateArray(), token->at);
    case GD_JSON_OBJECT_END:
    case GD_JSON_ARRAY_END: free(b->keys[--b->depth].slot); return GD_OK;
    case GD_JSON_KEY: return take_key(b, token);
    case GD_JSON_STRING: return add_node(b, cJSON_CreateString(token->text), token->at);
    case GD_JSON_NUMBER: return add_node(b, number_node(token->text), token->at);
    case GD_JSON_TRUE: return add_node(b, cJSON_CreateTrue(), token->at);
    case GD_JSON_FALSE: return add_node(b, cJSON_CreateFalse(), token->at);
    case GD_JSON_NULL: return add_node(b, cJSON_CreateNull(), token->at);
    default: return GD_OK;
    }
}

/* cJSON keeps a node's last child in the `prev` of the first one; do the same here. */
int gd_json_parse(const char *text, size_t size, const struct gd_json_options *options, cJSON **ret,
                  struct gd_err *err)
{
    static const struct gd_json_options none;
    struct building b = {.options = options ? options : &none, .err = err};
    struct gd_json_token token;
    int rc;

    b.json = (struct gd_json){
        .text = text, .size = size, .max_depth = b.options->max_depth, .what = b.options->what};
    do {
        rc = gd_json_next(&b.json, &token, err);
        rc = rc != GD_OK ? rc : take_token(&b, &token);
    } while (rc == GD_OK && token.kind != GD_JSON_END);
    while (b.depth > 0) {
        free(b.keys[--b.depth].slot);
    }
    cJSON_free(b.key);
    gd_json_deinit(&b.json);
    if (rc != GD_OK) {
        cJSON_Delete(b.root);
        return rc;
    }
    *ret = b.root;
    return GD_OK;
}

int gd_json_read(struct gd_disk *disk, const struct gd_json_options *options, cJSON **ret,
                 struct gd_err *err)
{
    struct gd_json_options told = options ? *options : (struct gd_json_options){0};
    struct gd_file_text text;
    int rc = gd_disk_read_text(disk, told.max_bytes ? told.max_bytes : MAX_BYTES, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    told.what = told.what ? told.what : gd_disk_path(disk);
    rc = gd_json_parse(text.data, text.size, &told, ret, err);
    free(text.data);
    return rc;
}
