// SPDX-License-Identifier: GPL-3.0-or-later
/* Between selector_parse.c, which reads the words, and selector.c, which finds what they mean. */
#ifndef GD_ENGINE_SELECTOR_IMPL_H
#define GD_ENGINE_SELECTOR_IMPL_H

#include <regex.h>

#include "engine/graph/selector.h"

enum term_kind {
    TERM_NAME, /* node, scope or glob: decided when resolved, since names may hold * and [ */
    TERM_QUOTED,
    TERM_REGEX,
    TERM_KINDS,
    TERM_WORD, /* what a node is to the training: enum selector_word */
    TERM_ALL,
    TERM_TYPE,
    TERM_ACTIVATION, /* activations of one type */
    TERM_SOURCE,
};

enum selector_word {
    WORD_TRAINABLE,
    WORD_FROZEN,
    WORD_LORA,
    WORD_MODEL,
    WORD_OUTSIDE,
    WORD_EVAL,
};

struct term {
    enum term_kind kind;
    enum selector_word word; /* TERM_WORD */
    bool except;
    char *text;
    uint32_t line;  /* TERM_SOURCE */
    unsigned kinds; /* TERM_KINDS: bits of enum gd_node_kind */
    regex_t regex;
    struct term *next;
};

struct gd_selector {
    struct term *terms;
    enum gd_selector_extent extent;
};

/* selector_word.c */
bool selector_find_word(const char *text, enum selector_word *ret);
bool selector_word_means(enum selector_word word, const struct gd_graph *graph, gd_node_id node,
                         const struct gd_node_info *info);

#endif
