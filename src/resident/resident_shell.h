// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The shell that started gradb, and the terminal that controls both. A session that leaves them
 * lets the shell have its prompt again, and no key of that terminal reaches it any more.
 */
#ifndef GD_RESIDENT_SHELL_H
#define GD_RESIDENT_SHELL_H

/* Cheap when there is neither any more. The terminal must be as the shell wants it. */
void resident_leave_shell(void);

#endif
