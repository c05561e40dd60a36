// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/await.h"

#include <stdlib.h>

#include "repl/core/command.h"

bool await_take(void *answer)
{
    struct await *await = answer;

    if (await->left) {
        free(answer);
        return false;
    }
    await->arrived = true;
    return true;
}

void await_leave(void *answer)
{
    ((struct await *)answer)->left = true;
}

static bool has_arrived(void *answer)
{
    return ((const struct await *)answer)->arrived;
}

int repl_await(struct repl *repl, void *answer, double seconds)
{
    int rc = repl_wait(repl, has_arrived, answer, seconds);

    if (rc != GD_OK) {
        await_leave(answer);
    }
    return rc;
}
