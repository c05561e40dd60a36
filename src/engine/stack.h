// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's source_address text, every release's form, as frames.
 *
 * Accepted (spec section 7.4): "      # In file PATH(LINE)/CODE/", "      # In file
 * PATH:LINE/CODE/", the same after " - " or three spaces, and title lines "# Corresponding ...:".
 * gradb's own dumps add the function: "PATH(LINE)/CODE/ in FUNCTION".
 * Lines of other shape become frames with an empty file and the text as code.
 */
#ifndef GD_ENGINE_STACK_H
#define GD_ENGINE_STACK_H

#include "base/arena.h"
#include "engine/graph/graph.h"

/* *ret and its strings live in the arena. GD_ENOMEM. */
int gd_stack_parse(const char *text, size_t len, struct gd_arena *arena, struct gd_frame **ret,
                   uint32_t *count);

#endif
