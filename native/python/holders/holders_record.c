/* SPDX-License-Identifier: MIT
 * holders_record.c: a snapshot of holders in the recording: one record for each group, and one that says it is whole.
 *
 * docs/format.md, "Holding". A snapshot without its last record was cut by the end of the process, and readers leave it out.
 */
#include "python/holders/holders.h"

#ifdef PYINSIDE_KNOWN
#include <string.h>

enum { INCOMPLETE = 1, COLLECTING = 2 }; /* flags */
enum { RECORD_ROOM = 48 + 8 * TLMI_SAMPLES + 32 * 1024, WHOLE_SAMPLE_GROUPS = 16, FEW_SAMPLES = 8 };
#define TOTALS UINT32_MAX

typedef struct {
    uint64_t ticks;
    uint32_t snapshot;
    uint8_t trigger, flags;
    uint16_t steps;
    uint64_t arrays, held_bytes, used_bytes;
    uint32_t group;
    uint16_t addresses;
    uint8_t device, unused;
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

static uint64_t write_totals(tlmi_search *search, const tlmi_groups *groups, holding head,
                             const tlmi_snapshot *snapshot)
{
    const uint64_t more[] = {search->graph.count - 1, groups->with_memory, snapshot->tracked_bytes};
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

uint64_t tlmi_search_record(tlmi_search *search, tlmi_groups *groups, const tlmi_snapshot *snapshot)
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
    written += write_totals(search, groups, head, snapshot);
    tlmi_own_free(room, sizeof *room);
    room = NULL;
    return written;
}
#endif
