// SPDX-License-Identifier: GPL-3.0-or-later
/* data_dump.json and acl.json: a file is either valid or its mistakes are reported, and its
 * selection can be queried for any name. */
#include "fuzz.h"

#include "dump/mindspore/dump_config.h"

static void count_problem(void *ctx, unsigned long line, const char *text)
{
    size_t *told = ctx;

    FUZZ_CHECK(text[0] && line <= (unsigned long)1 << 20);
    ++*told;
}

static void check_config(const struct gd_dump_config *config, size_t size)
{
    FUZZ_CHECK(config->size == size && config->categories <= GD_MS_CATEGORIES);
    FUZZ_CHECK(config->io >= GD_DUMP_ALL && config->io <= GD_DUMP_OUTPUT);
    FUZZ_CHECK(config->data >= GD_DUMP_TENSOR && config->data <= GD_DUMP_FULL);
    FUZZ_CHECK(!config->net_name || config->net_name[0]);
    for (int i = 0; i < config->categories; i++) {
        FUZZ_CHECK(gd_ms_category_name(config->category[i]));
    }
    for (size_t i = 0; i < config->kernels; i++) {
        const struct gd_kernel_choice *choice = config->kernel[i];
        const char *text = gd_kernel_choice_text(choice);
        bool is_expression = strncmp(text, "name-regex(", 11) == 0;
        FUZZ_CHECK(is_expression || gd_kernel_choice_has(choice, text, "T"));
        gd_kernel_choice_has(choice, "Default/network/block0/attn/MatMul-op4", "MatMul");
    }
    if (config->has_steps) {
        gd_steps_have(&config->steps, 7);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_dump_config *config = NULL;
    struct gd_err err = {.text = ""};
    size_t bad = 0, told = 0;
    int rc = gd_dump_config_parse((const char *)data, size, "FILE", count_problem, &told, &bad,
                                  &config, &err);

    FUZZ_CHECK(told == bad);
    FUZZ_CHECK((config != NULL) == (rc == GD_OK && bad == 0));
    FUZZ_CHECK(rc == GD_OK || err.text[0]);
    if (config) {
        check_config(config, size);
    }
    gd_dump_config_free(config);
    return 0;
}
