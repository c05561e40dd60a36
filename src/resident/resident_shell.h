// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Detaches gradb from the shell and the controlling terminal that it was started from: the shell
 * shows its prompt again, and keys typed there no longer reach gradb.
 */
#ifndef GD_RESIDENT_SHELL_H
#define GD_RESIDENT_SHELL_H

/* Cheap when there is no controlling terminal. Restore the terminal settings first. */
void resident_leave_shell(void);

#endif
