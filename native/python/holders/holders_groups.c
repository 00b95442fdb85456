/* SPDX-License-Identifier: MIT
 * holders_groups.c: from each owner up to its root and down again by shapes; the largest groups; samples of them.
 *
 * A way of any length has a bounded shape: from some depth on a step that repeats one of the last four is not a new shape,
 * so that a linked list of a million nodes is one group.
 */
#include <string.h>

#include "python/holders/holders_groups.h"

enum { FIRST_SHAPES = 1 << 10, MOST_SHAPES = 1 << 24, FIRST_WAY = 1 << 12, PLAIN_DEPTH = 8, LOOK_BACK = 4 };

static uint32_t *shape_place(const tlmi_groups *groups, uint32_t parent, tlmi_likeness like)
{
    uint64_t key = (like.edge * 31 + like.type) * 31 + parent * 0x100000001B3u;
    uint32_t at = tlmi_graph_home(key ^ key >> 29, groups->mask);
    for (; groups->table[at] != 0; at = (at + 1) & groups->mask) {
        const tlmi_shape *shape = &groups->shapes[groups->table[at]];
        if (shape->parent == parent && shape->likeness.edge == like.edge && shape->likeness.type == like.type)
            break;
    }
    return &groups->table[at];
}

static bool grow_shapes(tlmi_groups *groups)
{
    uint32_t room = 2 * groups->room, slots = 2 * (groups->mask + 1);
    if (room > MOST_SHAPES)
        return false;
    tlmi_shape *shapes = tlmi_own_alloc((size_t)room * sizeof *shapes);
    uint32_t *table = shapes == NULL ? NULL : tlmi_own_alloc((size_t)slots * sizeof *table);
    if (table == NULL) {
        tlmi_own_free(shapes, (size_t)room * sizeof *shapes);
        return false;
    }
    memcpy(shapes, groups->shapes, groups->count * sizeof *shapes);
    tlmi_own_free(groups->shapes, groups->room * sizeof *shapes);
    tlmi_own_free(groups->table, ((size_t)groups->mask + 1) * sizeof *table);
    groups->shapes = shapes;
    groups->room = room;
    groups->table = table;
    groups->mask = slots - 1;
    for (uint32_t i = 1; i < groups->count; i++)
        *shape_place(groups, shapes[i].parent, shapes[i].likeness) = i;
    return true;
}

static uint32_t repeated_shape(const tlmi_groups *groups, uint32_t parent, tlmi_likeness like)
{
    if (groups->shapes[parent].depth < PLAIN_DEPTH)
        return 0;
    for (uint32_t at = parent, i = 0; at != 0 && i < LOOK_BACK; at = groups->shapes[at].parent, i++)
        if (groups->shapes[at].likeness.edge == like.edge && groups->shapes[at].likeness.type == like.type)
            return at;
    return 0;
}

/* The shape of a node below another shape; 0: no memory. */
static uint32_t shape_below(tlmi_groups *groups, const tlmi_graph *graph, uint32_t parent, tlmi_likeness like,
                            uint32_t node)
{
    uint32_t found = repeated_shape(groups, parent, like);
    uint32_t *place = found ? &found : shape_place(groups, parent, like);
    if (*place == 0) {
        if (groups->count == groups->room) {
            if (!grow_shapes(groups))
                return 0;
            place = shape_place(groups, parent, like);
        }
        groups->shapes[groups->count] =
            (tlmi_shape){.likeness = like, .parent = parent, .depth = groups->shapes[parent].depth + 1, .first = node};
        return *place = groups->count++;
    }
    tlmi_shape *shape = &groups->shapes[*place];
    if (tlmi_graph_node(graph, node)->edge != tlmi_graph_node(graph, shape->first)->edge)
        shape->is_varied = true;
    return *place;
}

static bool note_way(tlmi_groups *groups, uint32_t length, uint32_t node)
{
    if (length == groups->way_room) {
        uint32_t *longer = tlmi_own_alloc(2 * (size_t)length * sizeof *longer);
        if (longer == NULL)
            return false;
        memcpy(longer, groups->way, length * sizeof *longer);
        tlmi_own_free(groups->way, length * sizeof *longer);
        groups->way = longer;
        groups->way_room = 2 * length;
    }
    groups->way[length] = node;
    return true;
}

/* 0: no memory. */
static uint32_t shape_of(tlmi_groups *groups, const tlmi_graph *graph, uint32_t node, tlmi_liken liken, void *context)
{
    uint32_t length = 0;
    for (; node != 0 && groups->of_node[node] == 0; node = tlmi_graph_node(graph, node)->parent)
        if (!note_way(groups, length++, node))
            return 0;
    uint32_t shape = node == 0 ? 0 : groups->of_node[node];
    while (length > 0) {
        node = groups->way[--length];
        shape = shape_below(groups, graph, shape, liken(context, node), node);
        if (shape == 0)
            return 0;
        groups->of_node[node] = shape;
    }
    return shape;
}

static void count_owner(tlmi_groups *groups, tlmi_owner *owner, uint32_t number, uint32_t shape)
{
    tlmi_shape *of = &groups->shapes[shape];
    owner->shape = shape;
    if (owner->device == TLM_DEVICE_NONE) {
        if (of->untracked_count++ == 0)
            of->untracked_sample = number;
        of->untracked_bytes += owner->held_bytes;
        return;
    }
    if (of->count++ == 0) {
        of->sample = number;
        groups->with_memory++;
    }
    of->held_bytes += owner->held_bytes;
    of->used_bytes += tlmi_owner_used(owner);
    groups->owners++;
    groups->held_bytes += owner->held_bytes;
}

bool tlmi_groups_open(tlmi_groups *groups, tlmi_graph *graph, tlmi_liken liken, bool (*late)(void *), void *context)
{
    memset(groups, 0, sizeof *groups);
    groups->room = FIRST_SHAPES;
    groups->mask = 2 * FIRST_SHAPES - 1;
    groups->way_room = FIRST_WAY;
    groups->of_node_count = graph->count;
    groups->count = 1;
    groups->shapes = tlmi_own_alloc(groups->room * sizeof *groups->shapes);
    groups->table = tlmi_own_alloc(2 * FIRST_SHAPES * sizeof *groups->table);
    groups->way = tlmi_own_alloc(FIRST_WAY * sizeof *groups->way);
    groups->of_node = tlmi_own_alloc(groups->of_node_count * sizeof *groups->of_node);
    if (!groups->shapes || !groups->table || !groups->way || !groups->of_node) {
        tlmi_groups_close(groups);
        return false;
    }
    for (uint32_t i = 0; i < graph->owners_count; i++) {
        tlmi_owner *owner = &graph->owners[i];
        if (owner->node == 0)
            continue;
        uint32_t shape = i % 256 == 255 && late(context) ? 0 : shape_of(groups, graph, owner->node, liken, context);
        if (shape == 0) {
            groups->is_full = true;
            break;
        }
        count_owner(groups, owner, i, shape);
    }
    return true;
}

void tlmi_groups_close(tlmi_groups *groups)
{
    tlmi_own_free(groups->shapes, groups->room * sizeof *groups->shapes);
    tlmi_own_free(groups->table, ((size_t)groups->mask + 1) * sizeof *groups->table);
    tlmi_own_free(groups->way, groups->way_room * sizeof *groups->way);
    tlmi_own_free(groups->of_node, groups->of_node_count * sizeof *groups->of_node);
    memset(groups, 0, sizeof *groups);
}

static bool holds_more(const tlmi_shape *a, const tlmi_shape *b, bool by_count)
{
    uint64_t first = by_count ? a->count : a->held_bytes, other = by_count ? b->count : b->held_bytes;
    return first != other ? first > other : by_count ? a->held_bytes > b->held_bytes : a->count > b->count;
}

/* Adds the `most` largest of those not picked yet, in falling order. */
static void pick_largest(tlmi_groups *groups, uint32_t most, bool by_count)
{
    uint32_t *picked = groups->picked + groups->picked_count, count = 0;
    for (uint32_t i = 1; i < groups->count; i++) {
        const tlmi_shape *shape = &groups->shapes[i];
        if (shape->count == 0 || shape->pick != 0)
            continue;
        if (count == most && !holds_more(shape, &groups->shapes[picked[count - 1]], by_count))
            continue;
        uint32_t at = count < most ? count++ : count - 1;
        for (; at > 0 && holds_more(shape, &groups->shapes[picked[at - 1]], by_count); at--)
            picked[at] = picked[at - 1];
        picked[at] = i;
    }
    for (uint32_t i = 0; i < count; i++)
        groups->shapes[picked[i]].pick = ++groups->picked_count;
}

void tlmi_groups_pick(tlmi_groups *groups)
{
    pick_largest(groups, TLMI_GROUPS_BY_BYTES, false);
    pick_largest(groups, TLMI_GROUPS_BY_COUNT, true);
}

uint32_t tlmi_groups_pick_untracked(const tlmi_groups *groups, uint32_t *picked)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < groups->count; i++) {
        uint64_t bytes = groups->shapes[i].untracked_bytes;
        if (groups->shapes[i].untracked_count == 0 ||
            (count == TLMI_UNTRACKED_GROUPS && bytes <= groups->shapes[picked[count - 1]].untracked_bytes))
            continue;
        uint32_t at = count < TLMI_UNTRACKED_GROUPS ? count++ : count - 1;
        for (; at > 0 && bytes > groups->shapes[picked[at - 1]].untracked_bytes; at--)
            picked[at] = picked[at - 1];
        picked[at] = i;
    }
    return count;
}

void tlmi_groups_sample(const tlmi_groups *groups, const tlmi_graph *graph, uint64_t *addresses, uint32_t *counts)
{
    uint64_t met[TLMI_GROUPS] = {0};
    memset(counts, 0, TLMI_GROUPS * sizeof *counts);
    for (uint32_t i = 0; i < graph->owners_count; i++) {
        const tlmi_shape *shape = &groups->shapes[graph->owners[i].shape];
        if (shape->pick == 0 || graph->owners[i].device == TLM_DEVICE_NONE)
            continue;
        uint32_t group = shape->pick - 1;
        uint64_t number = met[group]++;
        /* The first of each of as many equal shares as there is room for. */
        if (shape->count <= TLMI_SAMPLES || number * TLMI_SAMPLES / shape->count >= counts[group])
            addresses[group * TLMI_SAMPLES + counts[group]++] = graph->owners[i].address;
    }
}
