/* SPDX-License-Identifier: MIT
 * holders_search.c: one search from begin to end: roots, what they do not reach, groups, record.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

static bool is_late(void *search)
{
    return tlmi_search_is_late(search);
}

/* Whether much of what is tracked was not met. The tally rounds; and a little of it is always on its way, as a temporary value
 * that nothing refers to but a running call. */
static bool are_missing(const tlmi_search *search, const tlmi_search_request *request, uint64_t tracked_bytes)
{
    enum { TALLY_ERROR = 32 * 1024, FEW = 128, SOME = 16 };
    uint64_t share = search->found_bytes / (request->may_stop ? SOME : FEW);
    return search->found_bytes + share + TALLY_ERROR < tracked_bytes;
}

static void walk(tlmi_search *search, const tlmi_search_request *request, uint64_t tracked_bytes)
{
    tlmi_search_own_roots(search, request->elsewhere, request->error);
    if (request->may_stop && are_missing(search, request, tracked_bytes))
        tlmi_search_generators(search);
    if (request->may_stop && !are_missing(search, request, tracked_bytes))
        return;
    tlmi_search_other_roots(search, request->elsewhere);
    if (are_missing(search, request, tracked_bytes))
        tlmi_search_unreached(search);
}

bool tlmi_search_run(const tlmi_search_request *request, tlmi_snapshot *snapshot, uint32_t *objects, uint32_t *owners,
                     uint64_t *bytes)
{
    tlmi_groups groups;
    tlmi_search *search = tlmi_own_alloc(sizeof *search);
    if (search == NULL || !tlmi_graph_open(&search->graph, request->objects, request->owners)) {
        tlmi_own_free(search, sizeof *search);
        return false;
    }
    search->deadline_ns = snapshot->begin_ns + request->limit_ns;
    search->until_clock = 1;
    search->next = 1;
    tlmi_search_find_types(search);
    walk(search, request, snapshot->tracked_bytes);
    /* What was met is told in any case; that takes a moment more. */
    bool was_late = search->is_late;
    search->is_late = false;
    search->deadline_ns = tlmi_clock_thread_ns() + request->limit_ns / 4;
    snapshot->found_bytes = search->found_bytes;
    *objects = search->graph.count - 1;
    *owners = search->graph.owners_count;
    *bytes = 0;
    bool grouped = tlmi_groups_open(&groups, &search->graph, tlmi_search_liken, is_late, search);
    search->is_late = search->is_late || was_late;
    if (grouped) {
        *bytes = tlmi_search_record(search, &groups, snapshot);
        tlmi_groups_close(&groups);
    }
    tlmi_own_free(search->roots, search->roots_room * sizeof *search->roots);
    tlmi_own_free(search->later, search->later_room * sizeof *search->later);
    tlmi_own_free(search->ring, search->ring_room * sizeof *search->ring);
    tlmi_graph_close(&search->graph);
    tlmi_own_free(search, sizeof *search);
    return grouped;
}
#endif
