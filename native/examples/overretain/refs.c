/* SPDX-License-Identifier: MIT
 * refs.c: the runtime of refs.h. What it does for tlmem is one probe beside each change of an owner.
 */
#include "refs.h"

#include <stdlib.h>

struct refs_object {
    long count;
    refs_object *content; /* of a cell */
    double payload[];
};

static refs_object *make(size_t bytes)
{
    refs_object *made = calloc(1, sizeof *made + bytes);
    if (!made)
        abort();
    made->count = 1;
    TLM_PROBE_ALLOC(made, sizeof *made + bytes);
    return made;
}

refs_object *refs_object_new(size_t bytes)
{
    refs_object *made = make(bytes);
    TLM_PROBE_MOVE(made, 0, tlm_probe_name("program"), made->count);
    return made;
}

refs_object *refs_cell_new(refs_object *content)
{
    refs_object *cell = make(0);
    cell->content = content;
    TLM_PROBE_MOVE(content, tlm_probe_name("program"), tlm_probe_owner(cell), content->count);
    TLM_PROBE_MOVE(cell, 0, tlm_probe_name("program"), cell->count);
    return cell;
}

refs_object *refs_cell_get(refs_object *cell, const char *owner)
{
    refs_object *content = cell->content;
    content->count++;
    TLM_PROBE_ACQUIRE(content, tlm_probe_name(owner), content->count);
    return content;
}

static void let_go(refs_object *object);

static void end(refs_object *object)
{
    refs_object *content = object->content;
    if (content) {
        TLM_PROBE_RELEASE(content, tlm_probe_owner(object), content->count - 1);
        let_go(content);
    }
    TLM_PROBE_FREE(object);
    free(object);
}

static void let_go(refs_object *object)
{
    if (--object->count == 0)
        end(object);
}

void refs_object_release(refs_object *object, const char *owner)
{
    TLM_PROBE_RELEASE(object, tlm_probe_name(owner), object->count - 1);
    let_go(object);
}

void *refs_payload(refs_object *object)
{
    return object->payload;
}
