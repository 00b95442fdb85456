/* SPDX-License-Identifier: MIT
 * linkage.c: finds the slots of the procedure linkage and global offset tables of ELF libraries by their relocations.
 *
 * A slot is where a relocation of type JUMP_SLOT or GLOB_DAT of the symbol is. It may hold the function, or code of its own
 * library that looks the function up when it is first called (lazy binding); anything else is another tool's and stays.
 * Slots that the linker protects after loading are made writable for the moment of the store. A library that is still being
 * loaded by another thread is left alone: protecting a page again that the linker is about to write to would end the program.
 */
#define _GNU_SOURCE
#include "platform/linkage.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && __SIZEOF_POINTER__ == 8
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { GLOB_DAT = R_X86_64_GLOB_DAT, JUMP_SLOT = R_X86_64_JUMP_SLOT, POINTER = R_X86_64_64 };
#else
enum { GLOB_DAT = R_AARCH64_GLOB_DAT, JUMP_SLOT = R_AARCH64_JUMP_SLOT, POINTER = R_AARCH64_ABS64 };
#endif

typedef struct {
    uintptr_t base, start, end; /* where the library's segments lie */
    uintptr_t relro, relro_end; /* read-only after loading */
    const Elf64_Sym *symbols;
    const char *names;
    const Elf64_Rela *tables[2];
    size_t counts[2];
    bool is_spared;
} library;

static const char *name_of(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    return slash ? slash + 1 : info->dlpi_name;
}

static bool begins_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* glibc relocates the addresses in a library's dynamic section when it is loaded, musl does not. */
static uintptr_t absolute(const library *lib, Elf64_Addr address)
{
    return address < lib->base ? lib->base + address : address;
}

/* false: it has no symbols or relocations. */
static bool read_library(const struct dl_phdr_info *info, library *lib)
{
    const Elf64_Dyn *entry = NULL;
    *lib = (library){.base = info->dlpi_addr, .start = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        uintptr_t start = lib->base + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_DYNAMIC)
            entry = (const Elf64_Dyn *)start;
        if (part->p_type == PT_GNU_RELRO) {
            lib->relro = start;
            lib->relro_end = end;
        }
        if (part->p_type == PT_LOAD) {
            lib->start = start < lib->start ? start : lib->start;
            lib->end = end > lib->end ? end : lib->end;
        }
    }
    size_t plt_bytes = 0, other_bytes = 0, relative = 0;
    bool with_addends = true;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = absolute(lib, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            lib->symbols = (const Elf64_Sym *)address;
            break;
        case DT_STRTAB:
            lib->names = (const char *)address;
            break;
        case DT_JMPREL:
            lib->tables[0] = (const Elf64_Rela *)address;
            break;
        case DT_PLTRELSZ:
            plt_bytes = entry->d_un.d_val;
            break;
        case DT_PLTREL:
            with_addends = entry->d_un.d_val == DT_RELA;
            break;
        case DT_RELA:
            lib->tables[1] = (const Elf64_Rela *)address;
            break;
        case DT_RELASZ:
            other_bytes = entry->d_un.d_val;
            break;
        case DT_RELACOUNT: /* relative ones come first: they have no symbol */
            relative = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    lib->counts[0] = lib->tables[0] && with_addends ? plt_bytes / sizeof(Elf64_Rela) : 0;
    lib->counts[1] = lib->tables[1] ? other_bytes / sizeof(Elf64_Rela) : 0;
    relative = relative < lib->counts[1] ? relative : lib->counts[1];
    lib->tables[1] += relative;
    lib->counts[1] -= relative;
    return lib->symbols && lib->names && lib->start < lib->end;
}

/* The linker protects whole pages only: from the first of these to before the other. */
static uintptr_t first_protected(const library *lib)
{
    return lib->relro & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static uintptr_t end_of_protected(const library *lib)
{
    return lib->relro_end & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static bool is_on_protected_page(const library *lib, uintptr_t address)
{
    return address >= first_protected(lib) && address < end_of_protected(lib);
}

/* Whether the linker has protected what it protects as its last step, all of it at once. Asks the kernel to set no bit of a word there,
 * which it refuses on a protected page. It does so in one step, so that a word that the linker is writing is not lost; nothing
 * waits for the word, so nothing is woken. A library for which there is no such answer keeps its slots. */
static bool is_loaded(const library *lib)
{
    static uint32_t none;
    uintptr_t word = first_protected(lib);
    if (word >= end_of_protected(lib))
        return true;
    int set_no_bit = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);
    return syscall(SYS_futex, &none, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, (uint32_t *)word, set_no_bit) < 0 &&
           errno == EFAULT;
}

static void store(const library *lib, void **slot, void *function)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)slot & ~(page - 1);
    bool is_protected = is_on_protected_page(lib, (uintptr_t)slot);
    if (is_protected && mprotect((void *)address, page, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    if (is_protected)
        mprotect((void *)address, page, PROT_READ);
}

typedef struct {
    tlmi_slots *group;
    bool back;
} request;

enum { MOST_SPARED = 4 };
static const void *_Atomic spared[MOST_SPARED];

bool tlmi_slots_spare(const void *address)
{
    for (int i = 0; i < MOST_SPARED; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&spared[i], &none, address) || none == address)
            return true;
    }
    return false;
}

static bool is_spared(const library *lib)
{
    for (int i = 0; i < MOST_SPARED; i++) {
        uintptr_t address = (uintptr_t)atomic_load_explicit(&spared[i], memory_order_relaxed);
        if (address >= lib->start && address < lib->end)
            return true;
    }
    return false;
}

/* A slot that the linker has not come to holds an offset within its library, or 0. */
static bool is_unset(const library *lib, uintptr_t value)
{
    return value < lib->start && value < lib->end - lib->start;
}

/* false: it is too early. */
static bool meet_slot(const library *lib, tlmi_slot *slot, void **place, bool is_pointer, bool back)
{
    uintptr_t now = (uintptr_t)__atomic_load_n(place, __ATOMIC_ACQUIRE), ours = (uintptr_t)slot->ours;
    if (back) {
        if (now == ours)
            store(lib, place, is_pointer && slot->alias != NULL ? slot->alias : slot->theirs);
        return true;
    }
    bool is_lazy = now >= lib->start && now < lib->end;
    bool is_it = now == (uintptr_t)slot->theirs || (slot->alias != NULL && now == (uintptr_t)slot->alias);
    if (now != ours && (is_it || is_lazy)) {
        store(lib, place, slot->ours);
        slot->count += (uintptr_t)__atomic_load_n(place, __ATOMIC_ACQUIRE) == ours;
    }
    return !is_unset(lib, now);
}

/* Likewise, of all slots. */
static bool meet_slots(const library *lib, const char *own_name, const request *asked)
{
    bool settled = true;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < lib->counts[table]; i++) {
            const Elf64_Rela *entry = &lib->tables[table][i];
            uint32_t type = (uint32_t)ELF64_R_TYPE(entry->r_info);
            if (type != GLOB_DAT && type != JUMP_SLOT && (type != POINTER || entry->r_addend != 0))
                continue;
            const char *name = lib->names + lib->symbols[ELF64_R_SYM(entry->r_info)].st_name;
            for (size_t k = 0; k < asked->group->count; k++) {
                tlmi_slot *slot = &asked->group->slots[k];
                if (name[0] != slot->symbol[0] || slot->theirs == NULL || (type == POINTER && !slot->pointers) ||
                    (lib->is_spared && !slot->everywhere) || strcmp(name, slot->symbol) != 0 ||
                    (slot->omit != NULL && begins_with(own_name, slot->omit)))
                    continue;
                void **place = (void **)(lib->base + entry->r_offset);
                settled &= meet_slot(lib, slot, place, type != JUMP_SLOT, asked->back);
            }
        }
    return settled;
}

static bool is_settled(const tlmi_slots *group, const void *headers)
{
    for (uint32_t i = 0; i < group->settled_count; i++)
        if (group->settled[i] == headers)
            return true;
    return false;
}

static int meet_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    const request *asked = context;
    tlmi_slots *group = asked->group;
    library lib;
    if ((!asked->back && is_settled(group, info->dlpi_phdr)) || !read_library(info, &lib))
        return 0;
    lib.is_spared = is_spared(&lib);
    if (!asked->back && !is_loaded(&lib)) {
        group->is_unsettled = true;
        return 0;
    }
    if (!meet_slots(&lib, name_of(info), asked))
        group->is_unsettled = true;
    else if (!asked->back && group->settled_count < TLMI_MOST_SETTLED)
        group->settled[group->settled_count++] = info->dlpi_phdr;
    return 0;
}

typedef struct {
    uint64_t loads, unloads;
} changes;

static int take_changes(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    changes *so_far = context;
    *so_far = (changes){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

void tlmi_slots_point_loaded(tlmi_slots *group)
{
    int error = errno;
    changes now = {0, 0};
    dl_iterate_phdr(take_changes, &now);
    if (now.loads == group->loads && now.unloads == group->unloads && !group->is_unsettled)
        return;
    if (now.unloads != group->unloads)
        group->settled_count = 0; /* another library may be where one was */
    group->loads = now.loads;
    group->unloads = now.unloads;
    group->is_unsettled = false;
    dl_iterate_phdr(meet_library, &(request){group, false});
    errno = error;
}

bool tlmi_slots_point(tlmi_slots *group)
{
    for (size_t i = 0; i < group->count; i++)
        group->slots[i].count = 0;
    group->settled_count = 0;
    group->loads = group->unloads = 0;
    tlmi_slots_point_loaded(group);
    return true;
}

void tlmi_slots_restore(tlmi_slots *group)
{
    dl_iterate_phdr(meet_library, &(request){group, true});
    group->settled_count = 0;
}

typedef struct {
    const char *library;
    char path[4096];
} named;

static int find_named(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    named *wanted = context;
    size_t length = strlen(info->dlpi_name);
    if (!begins_with(name_of(info), wanted->library) || length >= sizeof wanted->path)
        return 0;
    memcpy(wanted->path, info->dlpi_name, length + 1);
    return 1;
}

void *tlmi_slots_find(const char *library_name, const char *symbol)
{
    named wanted = {.library = library_name};
    if (dl_iterate_phdr(find_named, &wanted) == 0)
        return NULL;
    void *handle = dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, symbol) : NULL;
    if (handle)
        dlclose(handle);
    return found;
}

typedef struct {
    const char *symbol;
    uintptr_t found;
    void *behind; /* NULL: what was found is the function */
} stub;

/* Of the executable, which comes first. */
static int look_behind(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    stub *wanted = context;
    library lib;
    if (!read_library(info, &lib) || wanted->found < lib.start || wanted->found >= lib.end)
        return 1;
    for (size_t i = 0; i < lib.counts[0]; i++) {
        const Elf64_Sym *symbol = &lib.symbols[ELF64_R_SYM(lib.tables[0][i].r_info)];
        if (symbol->st_shndx != SHN_UNDEF || strcmp(lib.names + symbol->st_name, wanted->symbol) != 0)
            continue;
        void *now = __atomic_load_n((void **)(lib.base + lib.tables[0][i].r_offset), __ATOMIC_ACQUIRE);
        bool is_lazy = (uintptr_t)now >= lib.start && (uintptr_t)now < lib.end;
        wanted->behind = is_lazy ? dlsym(RTLD_NEXT, wanted->symbol) : now;
    }
    return 1;
}

void tlmi_slots_first(tlmi_slot *slot)
{
    slot->theirs = dlsym(RTLD_DEFAULT, slot->symbol);
    slot->alias = NULL;
    stub wanted = {slot->symbol, (uintptr_t)slot->theirs, NULL};
    if (slot->theirs != NULL)
        dl_iterate_phdr(look_behind, &wanted);
    if (wanted.behind != NULL) {
        slot->alias = slot->theirs;
        slot->theirs = wanted.behind;
    }
}
#else
void tlmi_slots_first(tlmi_slot *slot)
{
    slot->theirs = slot->alias = NULL;
}

bool tlmi_slots_spare(const void *address)
{
    (void)address;
    return false;
}

void *tlmi_slots_find(const char *library, const char *symbol)
{
    (void)library;
    (void)symbol;
    return NULL;
}

bool tlmi_slots_point(tlmi_slots *group)
{
    (void)group;
    return false;
}

void tlmi_slots_point_loaded(tlmi_slots *group)
{
    (void)group;
}

void tlmi_slots_restore(tlmi_slots *group)
{
    (void)group;
}
#endif
