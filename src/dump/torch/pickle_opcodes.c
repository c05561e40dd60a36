// SPDX-License-Identifier: GPL-3.0-or-later
/* The opcodes of pickles: a stack machine that builds values and does nothing else. */
#include <string.h>

#include "base/grow.h"
#include "dump/torch/pickle_impl.h"

#define MAX_OPCODES UINT64_C(100000000)

/* ---- helpers --------------------------------------------------------------------------------- */

static int fail_broken(struct pickle_machine *m, const char *why)
{
    return pickle_fail(&m->input, m->err, GD_EPROTO, "%s", why);
}

static const char *const kind_names[] = {
    [GD_PICKLE_NONE] = "None",        [GD_PICKLE_BOOL] = "a bool",
    [GD_PICKLE_INT] = "an integer",   [GD_PICKLE_BIG] = "an integer",
    [GD_PICKLE_FLOAT] = "a float",    [GD_PICKLE_TEXT] = "a string",
    [GD_PICKLE_BYTES] = "bytes",      [GD_PICKLE_LIST] = "a list",
    [GD_PICKLE_TUPLE] = "a tuple",    [GD_PICKLE_SET] = "a set",
    [GD_PICKLE_DICT] = "a dict",      [GD_PICKLE_GLOBAL] = "a class or function",
    [GD_PICKLE_OBJECT] = "an object", [GD_PICKLE_PERSISTENT] = "a persistent id",
};

static int wrong_kind(struct pickle_machine *m, const char *what, const struct gd_pickle_value *is)
{
    return pickle_fail(&m->input, m->err, GD_EPROTO, "%s is %s", what, kind_names[is->kind]);
}

/* The bottom of the part of the stack that opcodes may use: the last MARK. */
static uint32_t stack_bottom(const struct pickle_machine *m)
{
    return m->marks ? m->mark[m->marks - 1] : 0;
}

/* Checks that there are `count` values on the stack. */
static int need_values(struct pickle_machine *m, uint32_t count)
{
    if (m->depth - stack_bottom(m) < count) {
        return fail_broken(m, "too few values on the stack for this opcode");
    }
    return GD_OK;
}

static struct gd_pickle_value *value_below(const struct pickle_machine *m, uint32_t below)
{
    return m->stack[m->depth - 1 - below];
}

/* Removes the last MARK; the values above it remain valid in the stack's memory. */
static int take_marked(struct pickle_machine *m, struct gd_pickle_value ***ret, uint32_t *count)
{
    *ret = NULL;
    *count = 0;
    if (!m->marks) {
        return fail_broken(m, "no MARK for this opcode");
    }
    *ret = m->stack + stack_bottom(m);
    *count = m->depth - stack_bottom(m);
    m->depth = stack_bottom(m);
    m->marks--;
    return GD_OK;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static int op_stop(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    if (m->marks || m->depth != 1) {
        return pickle_fail(&m->input, m->err, GD_EPROTO, "the pickle ends with %s",
                           m->depth ? "more than its result on the stack" : "no result");
    }
    m->pickle->root = m->stack[0];
    m->stopped = true;
    return GD_OK;
}

static int op_mark(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    if (m->marks >= GD_PICKLE_MAX_STACK) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %d open MARKs",
                           GD_PICKLE_MAX_STACK);
    }
    if (!gd_grow_list(&m->mark, m->marks, &m->mark_cap, sizeof(*m->mark))) {
        return gd_fail_nomem(m->err);
    }
    m->mark[m->marks++] = m->depth;
    return GD_OK;
}

static int op_pop(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    if (m->marks && m->depth == stack_bottom(m)) {
        m->marks--;
        return GD_OK;
    }
    if (need_values(m, 1) != GD_OK) {
        return m->err->code;
    }
    m->depth--;
    return GD_OK;
}

static int op_pop_mark(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value **value;
    uint32_t count;

    (void)token;
    return take_marked(m, &value, &count);
}

static int op_dup(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    return need_values(m, 1) != GD_OK ? m->err->code : pickle_push(m, value_below(m, 0));
}

/* ---- constants ------------------------------------------------------------------------------- */

static int op_none(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    return pickle_push(m, pickle_new(m, GD_PICKLE_NONE));
}

static int push_bool(struct pickle_machine *m, bool truth)
{
    struct gd_pickle_value *value = pickle_new(m, GD_PICKLE_BOOL);

    if (value) {
        value->truth = truth;
    }
    return pickle_push(m, value);
}

static int op_bool(struct pickle_machine *m, const struct pickle_token *token)
{
    return push_bool(m, token->how != 0);
}

static int op_int(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *value = pickle_new(m, GD_PICKLE_INT);

    if (value) {
        value->integer = token->integer;
    }
    return pickle_push(m, value);
}

static int op_float(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *value = pickle_new(m, GD_PICKLE_FLOAT);

    if (value) {
        value->real = token->real;
    }
    return pickle_push(m, value);
}

/* Strings, bytes and integers beyond 64 bits; `how` is their kind. */
static int op_string(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *value = pickle_new(m, (enum gd_pickle_kind)token->how);

    if (value) {
        value->text = token->text;
        value->count = token->len;
    }
    return pickle_push(m, value);
}

/* Newline-terminated operands; the opcode selects the type. */
static int op_line(struct pickle_machine *m, const struct pickle_token *token)
{
    const char *line = token->text;
    uint32_t len = token->len;
    unsigned how = token->how;

    if (how == 'F') {
        return pickle_push(m, pickle_parse_float(m, line, len));
    }
    if (how == 'S' || how == 'V') {
        return pickle_push(m, pickle_parse_text(m, line, len, how == 'S'));
    }
    if (how == 'I' && len == 2 && line[0] == '0' && (line[1] == '0' || line[1] == '1')) {
        return push_bool(m, line[1] == '1');
    }
    return pickle_push(m, pickle_parse_int(m, line, len));
}

/* ---- containers ------------------------------------------------------------------------------ */

static int op_empty(struct pickle_machine *m, const struct pickle_token *token)
{
    return pickle_push(m, pickle_new(m, (enum gd_pickle_kind)token->how));
}

/* Creates a container from `count` values taken off the stack. */
static int make_container(struct pickle_machine *m, enum gd_pickle_kind kind,
                          struct gd_pickle_value **value, uint32_t count)
{
    struct gd_pickle_value *made = pickle_new(m, kind);

    if (!made || (count && pickle_extend(m, made, value,
                                         kind == GD_PICKLE_DICT ? count / 2 : count) != GD_OK)) {
        return m->err->code;
    }
    return pickle_push(m, made);
}

static int op_collect(struct pickle_machine *m, const struct pickle_token *token)
{
    unsigned how = token->how;
    struct gd_pickle_value **value;
    uint32_t count;

    if (take_marked(m, &value, &count) != GD_OK) {
        return m->err->code;
    }
    if (how == GD_PICKLE_DICT && count % 2) {
        return fail_broken(m, "a dict with a key without a value");
    }
    return make_container(m, (enum gd_pickle_kind)how, value, count);
}

static int op_tuple(struct pickle_machine *m, const struct pickle_token *token)
{
    unsigned how = token->how;
    if (need_values(m, how) != GD_OK) {
        return m->err->code;
    }
    m->depth -= how;
    return make_container(m, GD_PICKLE_TUPLE, m->stack + m->depth, how);
}

/* The container that values are added to: the value itself, or part of an object. */
static struct gd_pickle_value *
container_of(struct pickle_machine *m, struct gd_pickle_value *target, enum gd_pickle_kind kind)
{
    struct gd_pickle_value **own;

    if (target->kind == kind) {
        return target;
    }
    if (target->kind != GD_PICKLE_OBJECT) {
        wrong_kind(m,
                   kind == GD_PICKLE_DICT  ? "the target of keys"
                   : kind == GD_PICKLE_SET ? "the target of added items"
                                           : "the target of appended items",
                   target);
        return NULL;
    }
    own = kind == GD_PICKLE_DICT ? &target->object->dict : &target->object->list;
    if (!*own) {
        *own = pickle_new(m, kind == GD_PICKLE_DICT ? GD_PICKLE_DICT : GD_PICKLE_LIST);
    }
    return *own;
}

/* APPEND, SETITEM; `how` is the kind of the container. */
static int op_put_one(struct pickle_machine *m, const struct pickle_token *token)
{
    unsigned how = token->how;
    uint32_t count = how == GD_PICKLE_DICT ? 2 : 1;
    struct gd_pickle_value *container;

    if (need_values(m, count + 1) != GD_OK) {
        return m->err->code;
    }
    container = container_of(m, value_below(m, count), (enum gd_pickle_kind)how);
    m->depth -= count;
    return container ? pickle_extend(m, container, m->stack + m->depth, 1) : m->err->code;
}

/* APPENDS, SETITEMS, ADDITEMS. */
static int op_put_many(struct pickle_machine *m, const struct pickle_token *token)
{
    unsigned how = token->how;
    struct gd_pickle_value **value, *container;
    uint32_t count;

    if (take_marked(m, &value, &count) != GD_OK || need_values(m, 1) != GD_OK) {
        return m->err->code;
    }
    if (how == GD_PICKLE_DICT && count % 2) {
        return fail_broken(m, "a key without a value");
    }
    container = container_of(m, value_below(m, 0), (enum gd_pickle_kind)how);
    if (!container) {
        return m->err->code;
    }
    return pickle_extend(m, container, value, how == GD_PICKLE_DICT ? count / 2 : count);
}

/* ---- the memo -------------------------------------------------------------------------------- */

static bool find_memo(struct pickle_machine *m, uint64_t key, uint64_t hash, uint32_t *ret)
{
    for (size_t at = 0; gd_hash_index_next(&m->memo_at, hash, &at, ret);) {
        if (m->memo_key[*ret] == key) {
            return true;
        }
    }
    return false;
}

static int grow_memo(struct pickle_machine *m)
{
    size_t cap = m->memo_cap;

    if (m->memo_count >= GD_PICKLE_MAX_MEMO) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %d memo entries",
                           GD_PICKLE_MAX_MEMO);
    }
    return gd_grow_list(&m->memo_key, m->memo_count, &cap, sizeof(*m->memo_key)) &&
                   gd_grow_list(&m->memo, m->memo_count, &m->memo_cap, sizeof(*m->memo))
               ? GD_OK
               : gd_fail_nomem(m->err);
}

static int put_memo(struct pickle_machine *m, uint64_t key)
{
    uint64_t hash = gd_hash_index_hash(&m->memo_at, &key, sizeof(key));
    uint32_t number;

    if (need_values(m, 1) != GD_OK) {
        return m->err->code;
    }
    if (find_memo(m, key, hash, &number)) {
        m->memo[number] = value_below(m, 0);
        return GD_OK;
    }
    if (grow_memo(m) != GD_OK) {
        return m->err->code;
    }
    m->memo_key[m->memo_count] = key;
    m->memo[m->memo_count] = value_below(m, 0);
    return gd_hash_index_add(&m->memo_at, hash, m->memo_count++, m->err);
}

static int get_memo(struct pickle_machine *m, uint64_t key)
{
    uint64_t hash = gd_hash_index_hash(&m->memo_at, &key, sizeof(key));
    uint32_t number;

    if (!find_memo(m, key, hash, &number)) {
        return pickle_fail(&m->input, m->err, GD_EPROTO, "memo entry %llu does not exist",
                           (unsigned long long)key);
    }
    return pickle_push(m, m->memo[number]);
}

static int op_put(struct pickle_machine *m, const struct pickle_token *token)
{
    return put_memo(m, token->key);
}

static int op_get(struct pickle_machine *m, const struct pickle_token *token)
{
    return get_memo(m, token->key);
}

static int op_memoize(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    return put_memo(m, m->memo_count);
}

/* ---- names and objects ----------------------------------------------------------------------- */

static int op_global(struct pickle_machine *m, const struct pickle_token *token)
{
    return pickle_push(m,
                       pickle_new_global(m, token->text, token->len, token->name, token->name_len));
}

static int op_stack_global(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *module, *name;

    (void)token;
    if (need_values(m, 2) != GD_OK) {
        return m->err->code;
    }
    module = value_below(m, 1);
    name = value_below(m, 0);
    if (module->kind != GD_PICKLE_TEXT || name->kind != GD_PICKLE_TEXT) {
        return wrong_kind(m, "the class name", module->kind != GD_PICKLE_TEXT ? module : name);
    }
    m->depth -= 2;
    return pickle_push(m,
                       pickle_new_global(m, module->text, module->count, name->text, name->count));
}

/* Dicts created by calling their class with their contents: {...}, or [[key, value], ...] in Python
 * 2. */
static int fill_dict(struct pickle_machine *m, struct gd_pickle_object *object)
{
    struct gd_pickle_value *from = gd_pickle_item(object->args, 0);

    if (!from || object->callee->kind != GD_PICKLE_GLOBAL ||
        strcmp(object->callee->global->module, "collections") != 0) {
        return GD_OK;
    }
    if (from->kind == GD_PICKLE_DICT) {
        object->dict = from;
        return GD_OK;
    }
    for (uint32_t i = 0; from->kind == GD_PICKLE_LIST && i < from->count; i++) {
        const struct gd_pickle_value *pair = from->item[i];

        if ((pair->kind != GD_PICKLE_LIST && pair->kind != GD_PICKLE_TUPLE) || pair->count != 2) {
            return GD_OK;
        }
        if (!object->dict) {
            object->dict = pickle_new(m, GD_PICKLE_DICT);
        }
        if (!object->dict || pickle_extend(m, object->dict, pair->item, 1) != GD_OK) {
            return m->err->code;
        }
    }
    return GD_OK;
}

static int make_object(struct pickle_machine *m, struct gd_pickle_value *callee,
                       struct gd_pickle_value *args, struct gd_pickle_value *keywords)
{
    struct gd_pickle_value *made;

    if (callee->kind != GD_PICKLE_GLOBAL && callee->kind != GD_PICKLE_OBJECT &&
        callee->kind != GD_PICKLE_PERSISTENT) {
        return wrong_kind(m, "the called object", callee);
    }
    if (args->kind != GD_PICKLE_TUPLE) {
        return wrong_kind(m, "the argument tuple", args);
    }
    made = pickle_new(m, GD_PICKLE_OBJECT);
    if (made) {
        made->object = pickle_alloc(m, sizeof(*made->object));
    }
    if (!made || !made->object) {
        return m->err->code;
    }
    made->object->callee = callee;
    made->object->args = args;
    made->object->keywords = keywords;
    return fill_dict(m, made->object) != GD_OK ? m->err->code : pickle_push(m, made);
}

/* REDUCE, NEWOBJ: 2 values; NEWOBJ_EX: 3. */
static int op_call(struct pickle_machine *m, const struct pickle_token *token)
{
    unsigned how = token->how;
    struct gd_pickle_value **value;

    if (need_values(m, how) != GD_OK) {
        return m->err->code;
    }
    m->depth -= how;
    value = m->stack + m->depth;
    return make_object(m, value[0], value[1], how > 2 ? value[2] : NULL);
}

static int op_build(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *target;

    (void)token;
    if (need_values(m, 2) != GD_OK) {
        return m->err->code;
    }
    target = value_below(m, 1);
    if (target->kind != GD_PICKLE_OBJECT) {
        return wrong_kind(m, "the object with state", target);
    }
    target->object->state = value_below(m, 0);
    m->depth--;
    return GD_OK;
}

static int op_binpersid(struct pickle_machine *m, const struct pickle_token *token)
{
    (void)token;
    if (need_values(m, 1) != GD_OK) {
        return m->err->code;
    }
    m->depth--;
    return pickle_push(m, pickle_new_persistent(m, m->stack[m->depth]));
}

static int op_persid(struct pickle_machine *m, const struct pickle_token *token)
{
    struct gd_pickle_value *id = pickle_new(m, GD_PICKLE_TEXT);

    if (!id) {
        return m->err->code;
    }
    id->text = token->text;
    id->count = token->len;
    return pickle_push(m, pickle_new_persistent(m, id));
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef int (*op_fn)(struct pickle_machine *m, const struct pickle_token *token);
static const op_fn operations[] = {
    [PICKLE_STOP] = op_stop,
    [PICKLE_MARK] = op_mark,
    [PICKLE_POP] = op_pop,
    [PICKLE_POP_MARK] = op_pop_mark,
    [PICKLE_DUP] = op_dup,
    [PICKLE_NONE] = op_none,
    [PICKLE_BOOL] = op_bool,
    [PICKLE_INT] = op_int,
    [PICKLE_FLOAT] = op_float,
    [PICKLE_STRING] = op_string,
    [PICKLE_LINE] = op_line,
    [PICKLE_EMPTY] = op_empty,
    [PICKLE_COLLECT] = op_collect,
    [PICKLE_TUPLE] = op_tuple,
    [PICKLE_PUT_ONE] = op_put_one,
    [PICKLE_PUT_MANY] = op_put_many,
    [PICKLE_MEMO_PUT] = op_put,
    [PICKLE_MEMO_GET] = op_get,
    [PICKLE_MEMOIZE] = op_memoize,
    [PICKLE_GLOBAL] = op_global,
    [PICKLE_STACK_GLOBAL] = op_stack_global,
    [PICKLE_CALL] = op_call,
    [PICKLE_BUILD] = op_build,
    [PICKLE_BINPERSID] = op_binpersid,
    [PICKLE_PERSID] = op_persid,
};

int pickle_run(struct pickle_machine *m)
{
    struct pickle_token token;

    for (uint64_t count = 0; !m->stopped; count++) {
        int rc = pickle_next(&m->input, &token, m->err);

        if (rc == GD_OK && count == MAX_OPCODES) {
            rc = pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %llu opcodes",
                             (unsigned long long)MAX_OPCODES);
        }
        if (rc == GD_OK && token.op == PICKLE_REFUSED) {
            rc = fail_broken(m, "this opcode requires a running Python and is refused");
        }
        if (rc == GD_OK && token.op != PICKLE_NOTHING) {
            rc = operations[token.op](m, &token);
        }
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}
