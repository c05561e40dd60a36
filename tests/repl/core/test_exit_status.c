// SPDX-License-Identifier: GPL-3.0-or-later
/* Which of two results counts, and answers that come late. */
#include "../../unit.h"
#include "repl/core/await.h"
#include "repl/core/exit_status.h"

static void the_worse_result_counts(void **state)
{
    static const struct {
        enum exit_status so_far, next, counts;
    } rows[] = {
        {STATUS_OK, STATUS_WATCHPOINT, STATUS_WATCHPOINT},
        {STATUS_FAILED, STATUS_WATCHPOINT, STATUS_FAILED},
        {STATUS_WATCHPOINT, STATUS_DIFFERS, STATUS_DIFFERS},
        {STATUS_DIFFERS, STATUS_FAILED, STATUS_FAILED},
        {STATUS_FAILED, STATUS_DIFFERS, STATUS_FAILED},
        {STATUS_WATCHPOINT, STATUS_TRAINING_FAILED, STATUS_TRAINING_FAILED},
        {STATUS_TRAINING_FAILED, STATUS_FAILED, STATUS_TRAINING_FAILED},
        {STATUS_TRAINING_FAILED, STATUS_DIFFERS, STATUS_TRAINING_FAILED},
        {STATUS_TRAINING_FAILED, STATUS_NO_CONNECTION, STATUS_NO_CONNECTION},
        {STATUS_FAILED, STATUS_INTERRUPTED, STATUS_INTERRUPTED},
        {STATUS_INTERRUPTED, STATUS_FAILED, STATUS_INTERRUPTED},
        {STATUS_DIFFERS, STATUS_OK, STATUS_DIFFERS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(exit_status_after(rows[i].so_far, rows[i].next), rows[i].counts);
    }
}

struct answer {
    struct await await;
    int value;
};

static void an_answer_that_nobody_awaits_is_freed(void **state)
{
    struct answer *awaited = calloc(1, sizeof(*awaited)), *left = calloc(1, sizeof(*left));

    assert_non_null(awaited);
    assert_non_null(left);
    assert_true(await_take(awaited));
    assert_true(awaited->await.arrived);
    free(awaited);
    await_leave(left);
    assert_false(await_take(left)); /* frees it: LeakSanitizer would report it */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_worse_result_counts),
    cmocka_unit_test(an_answer_that_nobody_awaits_is_freed),
};

RUN_TESTS()
