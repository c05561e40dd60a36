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
    TERM_ALL,
    TERM_TYPE,
    TERM_ACTIVATION, /* activations of one type */
    TERM_SOURCE,
};

struct term {
    enum term_kind kind;
    bool except;
    char *text;
    uint32_t line;  /* TERM_SOURCE */
    unsigned kinds; /* TERM_KINDS: bits of enum gd_node_kind */
    regex_t regex;
    struct term *next;
};

struct gd_selector {
    struct term *terms;
};

#endif
