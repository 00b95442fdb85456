/* SPDX-License-Identifier: MIT
 * holders_when.h: the one call from outside into the search for holders, beside those that Python makes.
 */
#ifndef TLMI_HOLDERS_WHEN_H
#define TLMI_HOLDERS_WHEN_H

void tlmi_holders_tick(void); /* by the service thread: asks for a snapshot of holders when one is due */
#endif
