/* SPDX-License-Identifier: MIT
 * test_address_map.c: a key that stays is found by every reader while others come and go, the table grows and memory ends.
 *
 * tlm-test: sources=own_memory.c,system.c,address_map.c */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "platform/address_map.h"

enum { KEYS = 3000, READERS = 3, ROUNDS = 200000 };

static tlmi_map map = TLMI_MAP_EMPTY;
static _Atomic bool keep_reading;

static uintptr_t key_of(uint64_t number)
{
    return 0x7f0000001000u + (uintptr_t)number * 48;
}

static void check_like_an_array(void)
{
    static uint64_t model[KEYS];
    uint64_t random = 99, live = 0;
    CHECK(tlmi_map_find(&map, key_of(1)) == 0 && tlmi_map_take(&map, key_of(1)) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = next_random(&random) % KEYS, value = 1 + (random >> 20) % 1000;
        CHECK(tlmi_map_find(&map, key_of(number)) == model[number]);
        if (random >> 40 & 1) {
            CHECK(tlmi_map_put(&map, key_of(number), value));
            live += model[number] == 0;
            model[number] = value;
        } else {
            CHECK(tlmi_map_take(&map, key_of(number)) == model[number]);
            live -= model[number] != 0;
            model[number] = 0;
        }
    }
    uintptr_t keys[7];
    uint64_t values[7], copied = 0;
    uint32_t cursor = 0;
    for (size_t got; (got = tlmi_map_copy(&map, &cursor, 7, keys, values)) != 0; copied += got)
        for (size_t i = 0; i < got; i++)
            CHECK(model[(keys[i] - key_of(0)) / 48] == values[i]);
    CHECK(copied == live && map.used == live);
    tlmi_map_clear(&map);
    for (uint64_t number = 0; number < KEYS; number++)
        CHECK(tlmi_map_find(&map, key_of(number)) == 0);
}

/* Even keys stay, odd ones come and go. */
static void *read_all(void *unused)
{
    (void)unused;
    while (keep_reading)
        for (uint64_t number = 0; number < KEYS; number++) {
            uint64_t value = tlmi_map_find(&map, key_of(number));
            CHECK(value == number + 1 || (number % 2 == 1 && value == 0));
        }
    return NULL;
}

static void check_readers(void)
{
    pthread_t readers[READERS];
    uint64_t random = 7;
    for (uint64_t number = 0; number < KEYS; number += 2)
        CHECK(tlmi_map_put(&map, key_of(number), number + 1));
    keep_reading = true;
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&readers[i], NULL, read_all, NULL) == 0);
    for (int i = 0; i < ROUNDS / 8; i++) {
        uint64_t number = next_random(&random) % KEYS | 1;
        if (random >> 40 & 1)
            CHECK(tlmi_map_put(&map, key_of(number), number + 1));
        else
            tlmi_map_take(&map, key_of(number));
    }
    for (uint64_t number = KEYS; number < 8 * KEYS; number++)
        CHECK(tlmi_map_put(&map, key_of(number), number + 1)); /* grows under the readers */
    keep_reading = false;
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_join(readers[i], NULL) == 0);
}

static void check_no_memory(void)
{
    static tlmi_map small = TLMI_MAP_EMPTY;
    uint64_t put = 0;
    tlm_own_fail_after(1);
    CHECK(!tlmi_map_put(&small, key_of(1), 1));
    CHECK(tlmi_map_put(&small, key_of(put++), 1));
    for (bool good = true; good && put < 4096; put += good) {
        tlm_own_fail_after(1);
        good = tlmi_map_put(&small, key_of(put), put + 1);
    }
    tlm_own_fail_after(0);
    CHECK(put > 512 && put < 1024);
    CHECK(tlmi_map_find(&small, key_of(put)) == 0);
    for (uint64_t number = 0; number < put; number++)
        CHECK(tlmi_map_find(&small, key_of(number)) == number + 1);
    CHECK(tlmi_map_put(&small, key_of(put), 5) && tlmi_map_find(&small, key_of(put)) == 5);
}

/* A thread that is not in the child may have held the lock in the middle of a change. */
static void check_fork(void)
{
    int status;
    CHECK(tlmi_map_find(&map, key_of(2)) == 3);
    pthread_mutex_lock(&map.lock);
    map.version++;
    pid_t pid = fork();
    if (pid == 0) {
        tlmi_map_after_fork(&map);
        CHECK(tlmi_map_find(&map, key_of(2)) == 0 && tlmi_map_put(&map, key_of(2), 9));
        CHECK(tlmi_map_find(&map, key_of(2)) == 9);
        _exit(0);
    }
    map.version++;
    pthread_mutex_unlock(&map.lock);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(tlmi_map_find(&map, key_of(2)) == 3);
}

int main(void)
{
    check_like_an_array();
    check_readers();
    check_no_memory();
    check_fork();
    return 0;
}
