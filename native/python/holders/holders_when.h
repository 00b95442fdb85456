/* SPDX-License-Identifier: MIT
 * holders_when.h: the calls from outside into the search for holders, beside those that Python makes.
 */
#ifndef TLMI_HOLDERS_WHEN_H
#define TLMI_HOLDERS_WHEN_H

void tlmi_holders_tick(void); /* by the service thread: asks for a snapshot of holders when one is due */
/* Under the GIL, which is given up meanwhile. No thread of the search is left, as before a fork. */
void tlmi_holders_settle(void);
#endif
