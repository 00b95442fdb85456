/* SPDX-License-Identifier: MIT
 * run.c: a replay as the caller sees it: made, run event by event, looked at.
 *
 * Owns the replay and all its tables. A replay belongs to one thread at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "replay/replay.h"

static const uint64_t MOST_BYTES = (uint64_t)1 << 46, FIRST_ADDRESS = (uint64_t)1 << 58;

/* ---- making ---- */

static bool is_power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

static bool is_size(uint64_t bytes, uint64_t grain)
{
    return bytes && bytes <= MOST_BYTES && bytes % grain == 0;
}

static bool are_sound(const tlm_sim_settings *settings)
{
    uint64_t grain = settings->grain_bytes;
    for (int i = 0; i < 16; i++)
        if (settings->divisions[i] && (!is_power_of_two(settings->divisions[i]) || settings->divisions[i] > 1 << 20))
            return false;
    return is_power_of_two(grain) && grain <= 1 << 20 && is_size(settings->small_bytes, grain) &&
           is_size(settings->small_segment_bytes, grain) && is_size(settings->large_segment_bytes, grain) &&
           is_size(settings->own_segment_bytes, grain) && is_size(settings->round_bytes, grain) &&
           settings->small_bytes <= settings->small_segment_bytes &&
           settings->own_segment_bytes <= settings->large_segment_bytes &&
           settings->small_bytes < settings->own_segment_bytes && settings->max_split_bytes <= MOST_BYTES &&
           settings->max_rounding_bytes <= MOST_BYTES && settings->capacity_bytes <= MOST_BYTES &&
           settings->allowed_bytes <= MOST_BYTES && settings->collect_above >= 0 && settings->collect_above < 1;
}

tlm_status tlm_sim_create(const tlm_sim_settings *settings, uint32_t blocks, uint32_t count, const tlm_sim_lane *lanes,
                          tlm_sim **out)
{
    *out = NULL;
    if (!are_sound(settings) || count == 0 || count > UINT16_MAX + 1 || blocks == UINT32_MAX)
        return TLM_BAD_ARGUMENT;
    tlm_sim *replay = tlmi_own_alloc(sizeof *replay);
    if (!replay)
        return TLM_NO_MEMORY;
    replay->settings = *settings;
    replay->figures.peak_event = UINT64_MAX;
    replay->blocks = blocks;
    replay->lanes = count;
    replay->top = FIRST_ADDRESS;
    replay->lane_bytes = count * (2 * sizeof *replay->shelves + sizeof *replay->lane);
    replay->block_table_bytes = ((size_t)blocks + 1) * sizeof *replay->parts_of;
    replay->shelves = tlmi_own_alloc(replay->lane_bytes);
    replay->parts_of = tlmi_own_alloc(replay->block_table_bytes);
    if (!replay->shelves || !replay->parts_of) {
        tlm_sim_destroy(replay);
        return TLM_NO_MEMORY;
    }
    replay->lane = (tlmi_lane *)(replay->shelves + 2 * (size_t)count);
    for (uint32_t i = 0; i < count; i++)
        replay->lane[i] = (tlmi_lane){.pool = lanes[i].pool,
                                      .keeps = lanes[i].pool != 0,
                                      .never_expands = (lanes[i].flags & TLM_SIM_NEVER_EXPANDS) != 0};
    *out = replay;
    return TLM_OK;
}

void tlm_sim_destroy(tlm_sim *replay)
{
    if (!replay)
        return;
    for (uint32_t i = 0; replay->shelves && i < 2 * replay->lanes; i++)
        tlmi_own_free(replay->shelves[i], sizeof *replay->shelves[i]);
    tlmi_own_free(replay->shelves, replay->lane_bytes);
    tlmi_own_free(replay->parts_of, replay->block_table_bytes);
    tlmi_own_free(replay->parts, replay->part_room * sizeof *replay->parts);
    tlmi_own_free(replay->segments, replay->segment_room * sizeof *replay->segments);
    tlmi_own_free(replay->places, replay->place_bytes);
    tlmi_own_free(replay->changes, replay->change_room * sizeof *replay->changes);
    tlmi_own_free(replay, sizeof *replay);
}

/* ---- before the first event ---- */

static bool is_range(const tlm_sim *replay, uint64_t address, uint64_t bytes)
{
    return bytes && bytes <= MOST_BYTES && address < FIRST_ADDRESS && !replay->figures.events && !replay->ended;
}

tlm_status tlm_sim_segment(tlm_sim *replay, uint64_t address, uint64_t bytes, uint32_t lane, int small, int expandable)
{
    if (!is_range(replay, address, bytes) || lane >= replay->lanes)
        return TLM_BAD_ARGUMENT;
    uint64_t capacity = replay->settings.capacity_bytes, granted = replay->figures.driver_allocs;
    replay->settings.capacity_bytes = 0;
    replay->figures.events = UINT64_MAX; /* before the first */
    bool is_added = tlmi_sim_add_segment(replay, (tlm_sim_range){address, bytes}, lane, small, expandable);
    replay->figures.events = 0;
    replay->figures.driver_allocs = granted;
    replay->settings.capacity_bytes = capacity;
    if (is_added)
        return TLM_OK;
    return replay->no_memory ? TLM_NO_MEMORY : TLM_BAD_ARGUMENT;
}

tlm_status tlm_sim_place(tlm_sim *replay, uint32_t block, uint64_t address, uint64_t bytes, uint64_t requested_bytes)
{
    if (!is_range(replay, address, bytes) || block >= replay->blocks || replay->parts_of[block] ||
        requested_bytes > bytes)
        return TLM_BAD_ARGUMENT;
    if (tlmi_sim_add_block(replay, block, (tlm_sim_range){address, bytes}, requested_bytes))
        return TLM_OK;
    return replay->no_memory ? TLM_NO_MEMORY : TLM_BAD_ARGUMENT;
}

static int by_size_and_order(const void *one, const void *other)
{
    const tlmi_place *a = one, *b = other;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

tlm_status tlm_sim_addresses(tlm_sim *replay, const tlm_sim_range *ranges, uint64_t count)
{
    tlmi_own_free(replay->places, replay->place_bytes);
    replay->place_count = 0;
    replay->place_bytes = count * sizeof *replay->places;
    replay->places = count ? tlmi_own_alloc(replay->place_bytes) : NULL;
    if (count && !replay->places)
        return TLM_NO_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        if (ranges[i].bytes && ranges[i].bytes <= MOST_BYTES && ranges[i].address < FIRST_ADDRESS)
            replay->places[replay->place_count++] = (tlmi_place){ranges[i].bytes, i, ranges[i].address, 0};
    if (replay->place_count)
        qsort(replay->places, replay->place_count, sizeof *replay->places, by_size_and_order);
    return TLM_OK;
}

/* ---- running ---- */

static tlm_status run_one(tlm_sim *replay, const tlm_sim_event *event, tlm_sim_step *step)
{
    uint32_t part = 0;
    bool is_of_block = event->kind == TLM_SIM_ALLOC || event->kind == TLM_SIM_FREE || event->kind == TLM_SIM_WAIT;
    if (tlmi_unlikely(is_of_block && event->block >= replay->blocks))
        return TLM_BAD_ARGUMENT;
    switch (event->kind) {
    case TLM_SIM_ALLOC:
        if (tlmi_unlikely(replay->parts_of[event->block] || event->lane >= replay->lanes || event->bytes > MOST_BYTES))
            return TLM_BAD_ARGUMENT;
        switch (tlmi_sim_alloc(replay, event, &part)) {
        case TLMI_ALLOC_DONE:
            break;
        case TLMI_ALLOC_REFUSED:
            return TLM_OUT_OF_MEMORY;
        case TLMI_ALLOC_NO_MEMORY:
            return TLM_NO_MEMORY;
        }
        if (step) {
            step->address = replay->parts[part].address;
            step->block_bytes = replay->parts[part].bytes;
        }
        break;
    case TLM_SIM_FREE:
        part = replay->parts_of[event->block];
        if (tlmi_unlikely(!part))
            return TLM_BAD_ARGUMENT;
        if (tlmi_likely(part != TLMI_BEFORE_ITS_FREE))
            tlmi_sim_free(replay, part);
        replay->parts_of[event->block] = 0;
        break;
    case TLM_SIM_WAIT:
        part = replay->parts_of[event->block];
        if (!part || part == TLMI_BEFORE_ITS_FREE)
            return TLM_BAD_ARGUMENT;
        tlmi_sim_wait(replay, part);
        break;
    case TLM_SIM_IDLE:
        if (event->lane >= replay->lanes || !replay->lane[event->lane].pool)
            return TLM_BAD_ARGUMENT;
        tlmi_sim_idle(replay, event->lane);
        break;
    case TLM_SIM_EMPTY:
        tlmi_sim_empty(replay);
        break;
    case TLM_SIM_COLLECT:
        if (tlmi_sim_collect(replay, event->bytes) < event->bytes) {
            tlmi_sim_empty(replay);
            replay->figures.retries++;
        }
        break;
    default:
        return TLM_BAD_ARGUMENT;
    }
    return replay->no_memory ? TLM_NO_MEMORY : TLM_OK;
}

tlm_status tlm_sim_run(tlm_sim *replay, const tlm_sim_event *events, uint64_t count, tlm_sim_step *steps)
{
    if (replay->ended)
        return TLM_BAD_ARGUMENT;
    for (uint64_t i = 0; i < count; i++) {
        tlm_sim_step *step = steps ? &steps[i] : NULL;
        if (step)
            *step = (tlm_sim_step){0};
        tlm_status status = run_one(replay, &events[i], step);
        if (tlmi_unlikely(status != TLM_OK)) {
            replay->ended = true;
            return status;
        }
        if (step)
            step->reserved_bytes = replay->figures.reserved_bytes;
        replay->figures.events++;
    }
    return TLM_OK;
}

/* ---- looking ---- */

uint64_t tlm_sim_parts(const tlm_sim *replay, tlm_sim_part *parts, uint64_t room)
{
    uint64_t count = 0;
    for (uint32_t s = replay->lowest; s; s = replay->segments[s].after) {
        const tlmi_segment *segment = &replay->segments[s];
        uint64_t begin = segment->address;
        for (uint32_t at = segment->first; at; at = replay->parts[at].after) {
            const tlmi_part *part = &replay->parts[at];
            if (part->state == TLMI_PART_UNMAPPED) {
                begin = part->address + part->bytes;
                continue;
            }
            if (count < room)
                parts[count] = (tlm_sim_part){begin,       part->address, part->bytes, part->requested,
                                              part->block, part->lane,    part->small, segment->expandable};
            count++;
        }
    }
    return count;
}

void tlm_sim_look(const tlm_sim *replay, tlm_sim_figures *figures)
{
    *figures = replay->figures;
    figures->segments = figures->largest_free_bytes = 0;
    for (uint32_t s = replay->lowest; s; s = replay->segments[s].after) {
        bool in_run = false;
        for (uint32_t at = replay->segments[s].first; at; at = replay->parts[at].after) {
            const tlmi_part *part = &replay->parts[at];
            bool is_mapped = part->state != TLMI_PART_UNMAPPED;
            figures->segments += is_mapped && !in_run;
            in_run = is_mapped;
            if (part->state == TLMI_PART_FREE && part->bytes > figures->largest_free_bytes)
                figures->largest_free_bytes = part->bytes;
        }
    }
}

uint64_t tlm_sim_log(const tlm_sim *replay, tlm_sim_change *changes, uint64_t room)
{
    uint64_t count = room < replay->change_count ? room : replay->change_count;
    if (count)
        memcpy(changes, replay->changes, count * sizeof *changes);
    return replay->change_count;
}
