/* SPDX-License-Identifier: MIT
 * holders_snapshot.c: one search from begin to end: roots, what they do not reach, groups; and its record in the file.
 *
 * docs/format.md, "Holding": one record for each group, and one that says the snapshot is whole. A snapshot without its last
 * record was cut by the end of the process, and readers leave it out. Between them, "Content": how many items the largest
 * containers have, who holds arrays over memory that is not tracked, and how many objects there are of the commonest types.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

/* ---- the record ---- */

enum { INCOMPLETE = 1, COLLECTING = 2 }; /* flags */
enum { RECORD_ROOM = 48 + 8 * TLMI_SAMPLES + 32 * 1024, WHOLE_SAMPLE_GROUPS = 16, FEW_SAMPLES = 8 };
enum { UNTRACKED_ARRAYS = 1, CONTAINER = 2, TYPE = 3, CACHED = 4 }; /* what */
#define TOTALS UINT32_MAX

typedef struct {
    uint64_t ticks;
    uint32_t snapshot;
    uint8_t trigger, flags;
    uint16_t steps;
    uint64_t arrays, held_bytes, used_bytes;
    uint32_t group;
    uint16_t addresses;
    uint8_t device, what; /* of a content; otherwise 0 */
} holding;
_Static_assert(sizeof(holding) == 48, "docs/format.md");

/* Under the GIL; of one snapshot at a time. */
static struct {
    uint64_t addresses[TLMI_GROUPS * TLMI_SAMPLES];
    uint32_t address_counts[TLMI_GROUPS];
    tlmi_step steps[TLMI_MOST_STEPS];
    tlmi_stop way[TLMI_WAY_ROOM];
    uint8_t record[RECORD_ROOM];
} *room;

/* The nodes from the root to this one; of a very long way both ends. Returns the root's number. */
static uint32_t fill_way(const tlmi_search *search, const tlmi_groups *groups, uint32_t node, uint32_t *count)
{
    uint32_t length = 0, at = node;
    for (uint32_t up = node; up != 0; up = tlmi_graph_node(&search->graph, up)->parent)
        length++;
    uint32_t root = 0, left_out = length > TLMI_WAY_ROOM ? length - TLMI_WAY_ROOM : 0;
    *count = length - left_out;
    for (uint32_t place = length; place-- > 0;) {
        const tlmi_node *now = tlmi_graph_node(&search->graph, at);
        uint32_t half = TLMI_WAY_ROOM / 2, shape = groups->of_node[at];
        uint32_t kept = place < half || left_out == 0 ? place
                        : place >= half + left_out    ? place - left_out
                                                      : UINT32_MAX;
        if (kept != UINT32_MAX)
            room->way[kept] =
                (tlmi_stop){now->object, place == half + left_out && left_out ? TLMI_EDGE_UNKNOWN : now->edge,
                            shape != 0 && groups->shapes[shape].is_varied};
        root = now->edge;
        at = now->parent;
    }
    return root;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

/* The record with its steps; its bytes. */
static uint32_t make_record(holding *head, uint32_t pick, const tlmi_step *steps)
{
    uint8_t *at = room->record + sizeof *head, *end = room->record + RECORD_ROOM;
    at = put(at, &room->addresses[pick * TLMI_SAMPLES], head->addresses * sizeof(uint64_t));
    uint16_t written = 0;
    for (; written < head->steps && at + 8 + steps[written].edge_bytes + steps[written].type_bytes <= end; written++) {
        const tlmi_step *step = &steps[written];
        at = put(at, step, 8);
        at = put(at, step->edge, step->edge_bytes);
        at = put(at, step->type, step->type_bytes);
    }
    head->steps = written;
    memcpy(room->record, head, sizeof *head);
    return (uint32_t)(at - room->record);
}

static uint32_t write_group(tlmi_search *search, tlmi_groups *groups, holding *head, uint32_t pick, uint64_t left)
{
    const tlmi_shape *shape = &groups->shapes[groups->picked[pick]];
    const tlmi_owner *owner = &search->graph.owners[shape->sample];
    uint32_t count, most = head->group < WHOLE_SAMPLE_GROUPS ? TLMI_SAMPLES : FEW_SAMPLES;
    uint32_t root = fill_way(search, groups, owner->node, &count);
    head->arrays = shape->count;
    head->held_bytes = shape->held_bytes;
    head->used_bytes = shape->used_bytes;
    head->device = owner->device;
    head->addresses = (uint16_t)room->address_counts[pick];
    if (head->addresses > most) {
        uint64_t *samples = &room->addresses[pick * TLMI_SAMPLES];
        for (uint32_t i = 0; i < most; i++)
            samples[i] = samples[i * head->addresses / most];
        head->addresses = (uint16_t)most;
    }
    head->steps = (uint16_t)tlmi_name_way(search, &search->roots[root], room->way, count, room->steps);
    uint32_t bytes = make_record(head, pick, room->steps);
    return bytes <= left && tlmi_meta_holding(room->record, bytes) ? bytes : 0;
}

/* Writes the record of `room->steps`; its bytes, 0 when it does not fit into `left` or the file. */
static uint64_t write_steps(holding *head, uint64_t left)
{
    uint32_t bytes = make_record(head, 0, room->steps);
    if (bytes > left || !tlmi_meta_content(room->record, bytes))
        return 0;
    head->group++;
    return bytes;
}

/* Of the first `length` steps of `room->way`. */
static uint64_t write_content(tlmi_search *search, holding *head, uint32_t root, uint32_t length, uint64_t left)
{
    head->steps = (uint16_t)tlmi_name_way(search, &search->roots[root], room->way, length, room->steps);
    return write_steps(head, left);
}

/* Untracked memory, by who has the arrays over it. */
static uint64_t write_untracked(tlmi_search *search, const tlmi_groups *groups, holding *head, uint64_t left)
{
    uint32_t picked[TLMI_UNTRACKED_GROUPS], count = tlmi_groups_pick_untracked(groups, picked);
    uint64_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        const tlmi_shape *shape = &groups->shapes[picked[i]];
        uint32_t length, node = search->graph.owners[shape->untracked_sample].node;
        uint32_t root = fill_way(search, groups, node, &length);
        head->what = UNTRACKED_ARRAYS;
        head->arrays = shape->untracked_count;
        head->held_bytes = shape->untracked_bytes;
        uint64_t bytes = write_content(search, head, root, length, left - written);
        if (bytes == 0)
            break;
        written += bytes;
    }
    return written;
}

/* The largest containers. A way leads to what is held: behind the container stands None, for any of its items. */
static uint64_t write_containers(tlmi_search *search, const tlmi_groups *groups, holding *head, uint64_t left)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < search->containers_count; i++) {
        uint32_t length, root = fill_way(search, groups, search->containers[i].node, &length);
        if (length == TLMI_WAY_ROOM)
            continue;
        room->way[length++] = (tlmi_stop){(uintptr_t)Py_None, 0, true};
        head->what = CONTAINER;
        head->arrays = search->containers[i].items;
        head->held_bytes = 0;
        uint64_t bytes = write_content(search, head, root, length, left - written);
        if (bytes == 0)
            break;
        written += bytes;
    }
    return written;
}

/* The types of which there are most objects. */
static uint64_t write_types(tlmi_search *search, holding *head, uint64_t left)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < search->types_count; i++) {
        tlmi_name_type(search->types[i].type, &room->steps[0]);
        head->steps = 1;
        head->what = TYPE;
        head->arrays = search->types[i].objects;
        head->held_bytes = 0;
        uint64_t bytes = write_steps(head, left - written);
        if (bytes == 0)
            break;
        written += bytes;
    }
    return written;
}

static uint64_t write_cached(const tlmi_search *search, holding *head, uint64_t left)
{
    if (search->cached_most == 0)
        return 0;
    head->steps = 0;
    head->what = CACHED;
    head->arrays = search->cached_items;
    head->held_bytes = search->cached_most;
    return write_steps(head, left);
}

static uint64_t write_contents(tlmi_search *search, const tlmi_groups *groups, holding head, uint64_t left)
{
    head.group = 0;
    head.device = TLM_DEVICE_NONE;
    head.addresses = 0;
    head.used_bytes = 0;
    uint64_t written = write_untracked(search, groups, &head, left);
    written += write_cached(search, &head, left - written);
    written += write_containers(search, groups, &head, left - written);
    return written + write_types(search, &head, left - written);
}

static uint64_t write_totals(tlmi_search *search, const tlmi_groups *groups, holding head,
                             const tlmi_snapshot *snapshot)
{
    const uint64_t more[] = {search->graph.count - 1 + search->passed, groups->with_memory, snapshot->tracked_bytes};
    head.group = TOTALS;
    head.steps = 0;
    head.device = 0;
    head.arrays = groups->owners;
    head.held_bytes = groups->held_bytes;
    head.used_bytes = tlmi_clock_thread_ns() - snapshot->begin_ns;
    head.addresses = sizeof more / sizeof *more;
    memcpy(room->record, &head, sizeof head);
    memcpy(room->record + sizeof head, more, sizeof more);
    uint32_t bytes = sizeof head + sizeof more;
    return tlmi_meta_holding(room->record, bytes) ? bytes : 0;
}

/* Writes the groups into the recording; returns the bytes. */
static uint64_t record_groups(tlmi_search *search, tlmi_groups *groups, const tlmi_snapshot *snapshot)
{
    uint64_t written = 0;
    bool is_incomplete = search->is_late || search->graph.is_full || groups->is_full;
    holding head = {.ticks = tlmi_clock_ticks(),
                    .snapshot = snapshot->number,
                    .trigger = snapshot->trigger,
                    .flags = (uint8_t)((is_incomplete ? INCOMPLETE : 0) | (PyGC_IsEnabled() ? COLLECTING : 0))};
    room = tlmi_own_alloc(sizeof *room);
    if (room == NULL)
        return 0;
    tlmi_groups_pick(groups);
    tlmi_groups_sample(groups, &search->graph, room->addresses, room->address_counts);
    for (uint32_t pick = 0; pick < groups->picked_count; pick++) {
        uint32_t bytes = write_group(search, groups, &head, pick, snapshot->room_bytes - written);
        written += bytes;
        head.group += bytes != 0;
    }
    written += write_contents(search, groups, head, snapshot->room_bytes - written);
    written += write_totals(search, groups, head, snapshot);
    tlmi_own_free(room, sizeof *room);
    room = NULL;
    return written;
}

/* ---- the search ---- */

static bool is_late(void *search)
{
    return tlmi_search_is_late(search);
}

/* How much of what is tracked must have been met so that not much is missing. The tally rounds; and a little of it is always on its
 * way, as a temporary value that nothing refers to but a running call. */
static uint64_t enough_of(const tlmi_search_request *request, uint64_t tracked_bytes)
{
    enum { TALLY_ERROR = 32 * 1024, FEW = 128, SOME = 16 };
    uint64_t parts = request->may_stop ? SOME : FEW;
    return tracked_bytes > TALLY_ERROR ? (tracked_bytes - TALLY_ERROR) / (parts + 1) * parts : 0;
}

/* The types are counted when the program's own objects are known, from which that goes faster, and before the search may have
 * to stop. */
static void walk(tlmi_search *search, const tlmi_search_request *request, uint64_t tracked_bytes)
{
    uint64_t until_ns = search->deadline_ns, enough_bytes = enough_of(request, tracked_bytes);
    search->enough_bytes = UINT64_MAX;
    search->deadline_ns -= request->counts_types ? request->limit_ns / 4 : 0;
    tlmi_search_own_roots(search, request->elsewhere, request->error);
    search->deadline_ns = until_ns;
    if (request->counts_types)
        tlmi_search_count_types(search, until_ns - request->limit_ns / 8);
    if (request->may_stop && search->found_bytes < enough_bytes)
        tlmi_search_generators(search);
    if (request->may_stop)
        search->enough_bytes = enough_bytes;
    if (search->found_bytes >= search->enough_bytes)
        return;
    tlmi_search_other_roots(search);
    if (search->found_bytes < enough_bytes)
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
    tlmi_search_find_types(search);
    walk(search, request, snapshot->tracked_bytes);
    /* What was met is recorded in any case; that takes a moment more. */
    bool was_late = search->is_late;
    search->is_late = false;
    search->deadline_ns = tlmi_clock_thread_ns() + request->limit_ns / 4;
    snapshot->found_bytes = search->found_bytes;
    *objects = search->graph.count - 1 + search->passed;
    *owners = search->graph.owners_count;
    *bytes = 0;
    bool grouped = tlmi_groups_open(&groups, &search->graph, tlmi_search_liken, is_late, search);
    search->is_late = search->is_late || was_late;
    if (grouped) {
        *bytes = record_groups(search, &groups, snapshot);
        tlmi_groups_close(&groups);
    }
    tlmi_own_free(search->roots, search->roots_room * sizeof *search->roots);
    tlmi_own_free(search->later, search->later_room * sizeof *search->later);
    tlmi_own_free(search->ring, search->ring_room * sizeof *search->ring);
    tlmi_own_free(search->modules, search->modules_room * sizeof *search->modules);
    tlmi_search_close_queue(search);
    tlmi_graph_close(&search->graph);
    tlmi_own_free(search, sizeof *search);
    return grouped;
}
#endif
