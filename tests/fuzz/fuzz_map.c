// SPDX-License-Identifier: GPL-3.0-or-later
/* Name maps from outside: JSON or lines; and the common spelling of any name. */

#include "compare/losslog.h"
#include "compare/match.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char name[4200], again[64];
    struct gd_loss loss;
    struct gd_map *map;
    struct gd_err err;

    if (gd_map_parse(text, size, &map, &err) == GD_OK) {
        FUZZ_CHECK(gd_map_count(map) > 0);
        for (size_t i = 0; i < gd_map_count(map); i++) {
            const char *a, *b;

            gd_map_pair(map, i, &a, &b);
            FUZZ_CHECK(a[0] && b[0]);
            FUZZ_CHECK(gd_map_name(map, a, false, name, sizeof(name)) && strcmp(name, b) == 0);
            gd_map_name(map, b, true, again, sizeof(again));
        }
        gd_map_free(map);
    }
    gd_name_common(text, name, sizeof(name));
    FUZZ_CHECK(strlen(name) < sizeof(name));
    gd_name_common(text, again, sizeof(again));
    FUZZ_CHECK(strlen(again) < sizeof(again));
    gd_loss_line(text, "loss", &loss);
    free(text);
    return 0;
}
