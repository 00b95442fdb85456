/* SPDX-License-Identifier: MIT
 * test_holders.c: every object is met once; memory held in the same way is one group; long ways and want of memory are borne.
 *
 * tlm-test: sources=own_memory.c,system.c,clock.c,holders_graph.c,holders_groups.c */
#include <string.h>

#include "check.h"
#include "python/holders/holders_groups.h"

enum { OBJECTS = 200000, ANY_ITEM = 1 << 20 };

static tlmi_graph graph;
static bool is_over;

static uintptr_t object_of(uint64_t number)
{
    return 0x7f0000000010u + (uintptr_t)number * 16;
}

/* An edge below ANY_ITEM is a name, from there on one item of many; the type is in the object's number. */
static tlmi_likeness liken(void *unused, uint32_t number)
{
    const tlmi_node *node = tlmi_graph_node(&graph, number);
    (void)unused;
    return (tlmi_likeness){node->edge < ANY_ITEM ? node->edge + 1 : 0, node->object % 1000};
}

static bool never(void *unused)
{
    (void)unused;
    return false;
}

static bool now_over(void *unused)
{
    (void)unused;
    return is_over;
}

static void own(uint32_t node, uint64_t address, uint64_t bytes)
{
    tlmi_owner *owner = tlmi_graph_owner(&graph, 1, address);
    owner->node = node;
    owner->held_bytes = bytes;
    owner->is_direct = true;
}

static void check_each_object_is_met_once(void)
{
    CHECK(tlmi_graph_open(&graph, 0, 0));
    for (uint64_t i = 0; i < OBJECTS; i++) {
        uint64_t mixed = i * 7919 % OBJECTS;
        CHECK(!tlmi_graph_has(&graph, object_of(mixed)));
        CHECK(tlmi_graph_mark(&graph, object_of(mixed)) && !tlmi_graph_mark(&graph, object_of(mixed)));
        CHECK(tlmi_graph_append(&graph, object_of(mixed), (uint32_t)i, 3) == i + 1);
    }
    for (uint64_t i = 0; i < OBJECTS; i++)
        CHECK(tlmi_graph_has(&graph, object_of(i)) && tlmi_graph_node(&graph, (uint32_t)i + 1)->parent == i);
    CHECK(!tlmi_graph_has(&graph, object_of(OBJECTS)) && !graph.is_full);
    tlmi_graph_close(&graph);
    CHECK(tlmi_own_current_bytes() == 0);
}

static void check_owners_are_found_by_device_and_address(void)
{
    CHECK(tlmi_graph_open(&graph, 0, 0));
    for (uint64_t i = 0; i < 5000; i++) {
        tlmi_graph_owner(&graph, 1, 16 * i)->held_bytes = i;
        tlmi_graph_owner(&graph, 16, 16 * i)->held_bytes = 2 * i;
    }
    CHECK(graph.owners_count == 10000);
    for (uint64_t i = 0; i < 5000; i++)
        CHECK(tlmi_graph_owner(&graph, 1, 16 * i)->held_bytes == i &&
              tlmi_graph_owner(&graph, 16, 16 * i)->held_bytes == 2 * i);
    tlmi_graph_close(&graph);
}

static void check_views_use_what_they_see(void)
{
    tlmi_owner owner = {.held_bytes = 100, .seen_bytes = 30};
    CHECK(tlmi_owner_used(&owner) == 30);
    owner.seen_bytes = 300;
    CHECK(tlmi_owner_used(&owner) == 100);
    owner = (tlmi_owner){.held_bytes = 100, .is_direct = true};
    CHECK(tlmi_owner_used(&owner) == 100);
}

/* A root with a name for each of `lists`, each leading to a list of `items` blocks of `bytes`, and `more` in each than in the
 * one before. */
static void build_lists(uint32_t lists, uint32_t items, uint32_t more, uint64_t bytes)
{
    CHECK(tlmi_graph_open(&graph, 0, 0));
    uint32_t root = tlmi_graph_append(&graph, 1000, 0, 0);
    for (uint32_t i = 0; i < lists; i++) {
        uint32_t list = tlmi_graph_append(&graph, 2001, root, i);
        for (uint32_t k = 0; k < items + i * more; k++)
            own(tlmi_graph_append(&graph, 3002, list, ANY_ITEM + k), object_of(i * 100000 + k), bytes);
    }
}

static void check_items_of_a_list_are_one_group(void)
{
    static uint64_t addresses[TLMI_GROUPS * TLMI_SAMPLES];
    static uint32_t counts[TLMI_GROUPS];
    tlmi_groups groups;
    build_lists(3, 1000, 1, 8);
    CHECK(tlmi_groups_open(&groups, &graph, liken, never, NULL));
    tlmi_groups_pick(&groups);
    CHECK(groups.with_memory == 3 && groups.picked_count == 3 && groups.owners == 3003 && groups.held_bytes == 24024);
    const tlmi_shape *largest = &groups.shapes[groups.picked[0]];
    CHECK(largest->count == 1002 && largest->held_bytes == 8016 && largest->used_bytes == 8016 && largest->is_varied);
    CHECK(!groups.shapes[largest->parent].is_varied);
    tlmi_groups_sample(&groups, &graph, addresses, counts);
    CHECK(counts[0] == TLMI_SAMPLES && counts[1] == TLMI_SAMPLES && counts[2] == TLMI_SAMPLES);
    CHECK(addresses[0] == object_of(200000) && addresses[TLMI_SAMPLES - 1] >= object_of(200000 + 1002 * 62 / 64));
    for (uint32_t i = 1; i < TLMI_SAMPLES; i++)
        CHECK(addresses[i] - addresses[i - 1] >= 15 * 16 && addresses[i] - addresses[i - 1] <= 16 * 16);
    tlmi_groups_close(&groups);
    tlmi_graph_close(&graph);
}

/* The same way leads to memory that is tracked and to such that is not; addresses are told of the former alone. */
static void check_untracked_memory_is_counted_by_itself(void)
{
    static uint64_t addresses[TLMI_GROUPS * TLMI_SAMPLES];
    static uint32_t counts[TLMI_GROUPS];
    uint32_t picked[TLMI_UNTRACKED_GROUPS];
    tlmi_groups groups;
    build_lists(20, 2, 0, 8);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t list = graph.owners[2 * i].node - 1;
        for (uint32_t k = 0; k <= i; k++) {
            uint32_t node = tlmi_graph_append(&graph, 3002, list, ANY_ITEM + k);
            tlmi_owner *owner = tlmi_graph_owner(&graph, 0, object_of(90000000 + i * 100 + k));
            owner->node = node;
            owner->held_bytes = 10;
        }
    }
    CHECK(tlmi_groups_open(&groups, &graph, liken, never, NULL));
    tlmi_groups_pick(&groups);
    CHECK(groups.owners == 40 && groups.held_bytes == 320 && groups.picked_count == 20);
    CHECK(tlmi_groups_pick_untracked(&groups, picked) == TLMI_UNTRACKED_GROUPS);
    for (uint32_t i = 0; i < TLMI_UNTRACKED_GROUPS; i++) {
        const tlmi_shape *shape = &groups.shapes[picked[i]];
        CHECK(shape->untracked_count == 20 - i && shape->untracked_bytes == 10 * (20 - i) && shape->count == 2);
        CHECK(graph.owners[shape->untracked_sample].device == 0);
    }
    tlmi_groups_sample(&groups, &graph, addresses, counts);
    for (uint32_t i = 0; i < 20; i++)
        CHECK(counts[i] == 2);
    tlmi_groups_close(&groups);
    tlmi_graph_close(&graph);
}

static void check_largest_and_most_numerous_are_picked(void)
{
    tlmi_groups groups;
    build_lists(400, 1, 1, 1000);
    uint32_t many = tlmi_graph_append(&graph, 2001, 1, 500);
    for (uint32_t k = 0; k < 5000; k++)
        own(tlmi_graph_append(&graph, 3002, many, ANY_ITEM + k), object_of(90000000 + k), 0);
    CHECK(tlmi_groups_open(&groups, &graph, liken, never, NULL));
    tlmi_groups_pick(&groups);
    CHECK(groups.picked_count == TLMI_GROUPS && groups.with_memory == 401);
    for (uint32_t i = 0; i < TLMI_GROUPS_BY_BYTES; i++)
        CHECK(groups.shapes[groups.picked[i]].count == 400 - i);
    CHECK(groups.shapes[groups.picked[TLMI_GROUPS_BY_BYTES]].count == 5000);
    CHECK(groups.shapes[groups.picked[TLMI_GROUPS_BY_BYTES + 1]].count == 400 - TLMI_GROUPS_BY_BYTES);
    tlmi_groups_close(&groups);
    tlmi_graph_close(&graph);
}

static void check_a_linked_list_has_few_shapes(void)
{
    tlmi_groups groups;
    CHECK(tlmi_graph_open(&graph, 0, 0));
    uint32_t node = tlmi_graph_append(&graph, 1000, 0, 0);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        /* Instances and their dicts in turn, each with a block. */
        node = tlmi_graph_append(&graph, 2001 + i % 2, node, i % 2);
        own(tlmi_graph_append(&graph, 3003, node, 9), object_of(i), 8);
    }
    CHECK(tlmi_groups_open(&groups, &graph, liken, never, NULL));
    tlmi_groups_pick(&groups);
    CHECK(groups.count < 40 && groups.owners == OBJECTS && !groups.is_full);
    tlmi_groups_close(&groups);
    tlmi_graph_close(&graph);
}

static void check_want_of_memory_and_time_are_borne(void)
{
    tlmi_groups groups;
    for (uint64_t n = 1; n <= 4; n++) {
        tlm_own_fail_after(n);
        CHECK(!tlmi_graph_open(&graph, 0, 0));
    }
    tlm_own_fail_after(0);
    for (uint64_t n = 1; n <= 12; n++) {
        build_lists(2000, 5, 0, 8);
        tlm_own_fail_after(n);
        if (tlmi_groups_open(&groups, &graph, liken, never, NULL)) {
            CHECK(groups.is_full == (groups.owners < graph.owners_count));
            tlmi_groups_close(&groups);
        }
        tlm_own_fail_after(0);
        tlmi_graph_close(&graph);
    }
    CHECK(tlmi_graph_open(&graph, 0, 0));
    tlm_own_fail_after(1);
    for (uint64_t i = 0; !graph.is_full; i++)
        tlmi_graph_mark(&graph, object_of(i * 1000));
    tlm_own_fail_after(0);
    tlmi_graph_close(&graph);
    build_lists(10, 100, 0, 8);
    is_over = true;
    CHECK(tlmi_groups_open(&groups, &graph, liken, now_over, NULL));
    CHECK(groups.is_full && groups.owners == 255);
    tlmi_groups_close(&groups);
    tlmi_graph_close(&graph);
    CHECK(tlmi_own_current_bytes() == 0);
}

int main(void)
{
    check_each_object_is_met_once();
    check_owners_are_found_by_device_and_address();
    check_views_use_what_they_see();
    check_items_of_a_list_are_one_group();
    check_untracked_memory_is_counted_by_itself();
    check_largest_and_most_numerous_are_picked();
    check_a_linked_list_has_few_shapes();
    check_want_of_memory_and_time_are_borne();
    return 0;
}
