/* SPDX-License-Identifier: MIT
 * refs.h: a small runtime with counted references, as an example of one that tlmem knows nothing of.
 *
 * An object has a count; who retains it says who he is. The functions are reached through macros that name the caller's line.
 */
#ifndef REFS_H
#define REFS_H

#include <stddef.h>

#include "tlmem_probe.h"

typedef struct refs_object refs_object;

/* A cell that holds one object and takes its count; the cell ends with its last count, and then lets go. */
#define refs_cell(out, content) TLM_PROBE_CALL((out) = refs_cell_new(content))
/* Zeroed memory with count 1, whose count the caller has. */
#define refs_new(out, bytes) TLM_PROBE_CALL((out) = refs_object_new(bytes))
/* What a cell holds, retained for `owner`, who must release it. */
#define refs_get(out, cell, owner) TLM_PROBE_CALL((out) = refs_cell_get(cell, owner))
#define refs_release(object, owner) TLM_PROBE_CALL(refs_object_release(object, owner))

refs_object *refs_cell_new(refs_object *content);
refs_object *refs_object_new(size_t bytes);
refs_object *refs_cell_get(refs_object *cell, const char *owner);
void refs_object_release(refs_object *object, const char *owner);
void *refs_payload(refs_object *object);

#endif
