// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef GD_REPL_SHOW_H
#define GD_REPL_SHOW_H

#include "repl/core/settings_table.h"

#include <cjson/cJSON.h>

/* Adds the setting with its value, default, range and text. */
void setting_record(const struct setting *setting, const struct gd_settings *settings,
                    cJSON *object);

#endif
