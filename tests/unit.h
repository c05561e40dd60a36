// SPDX-License-Identifier: GPL-3.0-or-later
/* cmocka, after the headers that it needs. */
#ifndef GRADB_TESTS_UNIT_H
#define GRADB_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
