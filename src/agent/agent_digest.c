// SPDX-License-Identifier: MIT
#include "agent/agent_digest.h"
#include "agent/agent_core.h"
#include "agent/agent_io.h"
#include "agent/agent_tensor.h"
#include "proto/envelope.h"

#include <endian.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT       160
#define MAX_REPLY  ((size_t)1 << 20)
#define AT_ONCE    64 /* pieces of AGENT_CHUNK bytes before other work gets its turn */
#define GOLDEN     UINT64_C(0x9e3779b97f4a7c15)
#define MIX_FIRST  UINT64_C(0xbf58476d1ce4e5b9)
#define MIX_SECOND UINT64_C(0x94d049bb133111eb)

enum { PARAMETERS = 1, OPTIMIZER = 2, GRADIENTS = 4 };

/* The finalizer of splitmix64. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ (x >> 30)) * MIX_FIRST;
    x = (x ^ (x >> 27)) * MIX_SECOND;
    return x ^ (x >> 31);
}

/* ---- which tensors --------------------------------------------------------------------------- */

/* By the program's own classification, or else by name. Inputs are leaves as well, but may differ
 * between ranks: they are not "Parameter". */
static unsigned kind_of(const struct agent_node *node)
{
    if (node->kind == GRADB_GRADIENT ||
        (node->kind == GRADB_AUTO && strncasecmp(node->name, "gradients/", 10) == 0)) {
        return GRADIENTS;
    }
    bool is_leaf = node->phase == GRADB_NO_PHASE && strcasecmp(node->type, "Parameter") == 0;
    bool may_be = node->kind == GRADB_AUTO || node->kind == GRADB_PARAMETER;
    if (node->kind != GRADB_WEIGHT && !(is_leaf && may_be)) {
        return 0;
    }
    return strcasestr(node->name, "optimizer") ? OPTIMIZER : PARAMETERS;
}

/* The words of the command, in the syntax of the PyTorch agent. */
static void take_words(struct agent_digest *d, const char *words)
{
    static const struct {
        const char *word;
        unsigned kinds;
    } known[] = {{"", PARAMETERS | OPTIMIZER},
                 {"parameters", PARAMETERS},
                 {"optimizer", OPTIMIZER},
                 {"gradients", GRADIENTS},
                 {"buffers", 0},
                 {"all", PARAMETERS | OPTIMIZER | GRADIENTS}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(words, known[i].word) == 0) {
            d->kinds = known[i].kinds;
            return;
        }
    }
    d->kinds = PARAMETERS | OPTIMIZER | GRADIENTS;
    snprintf(d->pattern, sizeof(d->pattern), "%s", words);
}

static bool is_wanted(const struct agent_digest *d, uint32_t id, const struct agent_node *node)
{
    if (strchr(node->name, '\n')) {
        return false; /* the answer has one line per tensor */
    }
    if (d->only) {
        return id == d->only;
    }
    return (kind_of(node) & d->kinds) &&
           (!d->pattern[0] || fnmatch(d->pattern, node->name, 0) == 0);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Finds the next tensor and starts reading it. False: there is none. */
static bool open_next(const struct agent *a, struct agent_digest *d)
{
    char text[TEXT];
    for (; d->node < a->published; d->node++, d->slot = 0) {
        const struct agent_node *node = agent_node_at(a, d->node);
        if (!node || !is_wanted(d, d->node, node)) {
            continue;
        }
        for (; d->slot < node->slot_count; d->slot++) {
            if (agent_locate(a, d->node, d->slot, GRADB__V1__ITERATION__CURRENT, &d->value, text) ==
                -1) {
                d->count = gd_shape_count(&d->value.tensor.shape);
                d->done = 0;
                d->total = d->word = 0;
                d->open = true;
                return true;
            }
        }
    }
    return false;
}

/* Reads one piece of the tensor; only the last one may end inside a word. */
static void read_piece(struct agent_digest *d)
{
    size_t item = gd_dtype_size(d->value.tensor.dtype);
    int64_t count = (int64_t)(AGENT_CHUNK / item);
    count = count < d->count - d->done ? count : d->count - d->done;
    size_t len = (size_t)count * item;
    size_t whole = (len + 7) / 8 * 8;
    agent_gather(&d->value.tensor, d->done, count, d->room);
    memset(d->room + len, 0, whole - len);
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t word;
        memcpy(&word, d->room + at, 8);
        d->total += mix_bits(le64toh(word) + ++d->word * GOLDEN);
    }
    d->done += count;
}

static void close_tensor(const struct agent *a, struct agent_digest *d)
{
    const struct agent_node *node = agent_node_at(a, d->node);
    uint64_t bytes = (uint64_t)d->count * gd_dtype_size(d->value.tensor.dtype);
    gd_buf_printf(&d->text, "%s%016llx %s", d->text.len > 0 ? "\n" : "",
                  (unsigned long long)mix_bits(d->total + bytes), node->name);
    if (d->slot > 0) {
        gd_buf_printf(&d->text, ":%u", d->slot);
    }
    d->slot++;
    d->open = false;
}

static int send_answer(struct agent_io *io)
{
    struct agent_digest *d = &io->digest;
    int rc;
    if (d->text.failed) {
        char text[TEXT];
        snprintf(text, sizeof(text), "the answer exceeds %zu bytes: ask for less", MAX_REPLY);
        rc = agent_values_refuse(io, d->request, CODE(TOO_LARGE), text);
    } else {
        Gradb__V1__CommandReply m = GRADB__V1__COMMAND_REPLY__INIT;
        m.request = d->request;
        m.text = gd_envelope_text(gd_buf_text(&d->text));
        rc = agent_wire_send(io, &m.base);
    }
    agent_digest_end(io);
    return rc;
}

int agent_digest_begin(struct agent_io *io, const Gradb__V1__Command *command, char text[TEXT])
{
    struct agent_digest *d = &io->digest;
    if (strcmp(command->name, "digest") != 0) {
        snprintf(text, TEXT, "this training program has no command '%.60s'", command->name);
        return CODE(UNSUPPORTED);
    }
    if (command->node != 0 && !agent_node_at(io->agent, command->node)) {
        snprintf(text, TEXT, "no node %u", command->node);
        return CODE(NOT_FOUND);
    }
    if (strlen(command->args) >= sizeof(d->pattern)) {
        snprintf(text, TEXT, "a pattern has at most %zu bytes", sizeof(d->pattern) - 1);
        return CODE(INVALID);
    }
    unsigned char *room = malloc(AGENT_CHUNK + 8);
    if (!room) {
        snprintf(text, TEXT, "out of memory in the training process");
        return CODE(NO_MEMORY);
    }
    *d = (struct agent_digest){.active = true,
                               .request = command->request,
                               .only = command->node,
                               .node = 1,
                               .text = GD_BUF_INIT(MAX_REPLY),
                               .room = room};
    take_words(d, command->args);
    return -1;
}

int agent_digest_go_on(struct agent_io *io)
{
    struct agent_digest *d = &io->digest;
    for (int i = 0; i < AT_ONCE && !d->text.failed; i++) {
        if (!d->open && !open_next(io->agent, d)) {
            return send_answer(io);
        }
        read_piece(d);
        if (d->done == d->count) {
            close_tensor(io->agent, d);
        }
    }
    return d->text.failed ? send_answer(io) : GD_OK;
}

void agent_digest_end(struct agent_io *io)
{
    struct agent_digest *d = &io->digest;
    if (d->active) {
        gd_buf_deinit(&d->text);
        free(d->room);
        d->active = false;
    }
}
