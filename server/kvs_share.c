/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/kvs_share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/kvmap.h"
#include "common/util.h"
#include "server/sealed.h"

#define PAGE 4096u
#define ROOM_FACTOR 4 /* of what is needed at present */
#define ROOM_MIN (1u << 20)
#define PLACES_MIN (ROOM_MIN / 32)

/* What one table needs. */
struct need {
    size_t cap;
    uint32_t places;
};

/* A file of one size. fd -1: none. */
struct file {
    int fd;
    char *base;
    size_t size;
};

struct kvs_share {
    struct kvtab *tab[KVMAP_TABLES];
    uint32_t slots;
    struct file file;
    bool is_open; /* between begin and end */
};

static struct kvmap_head *head_of(const struct file *f)
{
    return (struct kvmap_head *)(void *)f->base;
}

static _Atomic(uint32_t) *waiting_of(const struct file *f)
{
    return (_Atomic(uint32_t) *)(void *)(f->base + head_of(f)->waiting);
}

static uint64_t whole_pages(uint64_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

/* --- a file ----------------------------------------------------------------------------------------------------- */

/* Where everything will be. */
static struct kvmap_head lay_out(const struct need need[KVMAP_TABLES], uint32_t slots)
{
    struct kvmap_head h = {.magic = KVMAP_MAGIC, .slots = slots, .waiting = whole_pages(sizeof(h)) / 2};
    uint64_t at;

    static_assert(sizeof(h) <= PAGE / 2, "the head is before the middle of a page");
    at = whole_pages(h.waiting + (uint64_t)slots * sizeof(uint32_t));
    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        struct kvmap_table *t = &h.table[i];

        t->room = (uint32_t)MIN(MAX((uint64_t)need[i].cap * ROOM_FACTOR, ROOM_MIN), UINT32_MAX);
        t->places = (uint32_t)MIN(MAX((uint64_t)need[i].places * ROOM_FACTOR, PLACES_MIN), UINT32_MAX);
        t->index = at;
        at += whole_pages((uint64_t)t->places * sizeof(struct kvtab_place));
        t->arena = at;
        at += whole_pages(t->room);
    }
    h.size = at;
    return h;
}

static void file_close(struct file *f)
{
    if (f->fd < 0)
        return;
    atomic_store_explicit(&head_of(f)->seq, KVMAP_GONE, memory_order_release);
    munmap(f->base, f->size);
    close(f->fd);
    *f = (struct file){.fd = -1};
}

static int file_open(struct file *f, uint64_t size)
{
    void *base = NULL;
    int fd = size > SIZE_MAX / 2 ? -EFBIG : sealed_open("pmi-kvs", (size_t)size, &base);

    if (fd < 0)
        return fd;
    *f = (struct file){fd, base, (size_t)size};
    return 0;
}

/* Have memory for a part. Without this a want of memory would be a signal. */
static int file_fill(const struct file *f, uint64_t at, uint64_t n)
{
    int rc;

    do
        rc = fallocate(f->fd, 0, (off_t)at, (off_t)n);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -ENOMEM : 0;
}

/* --- tables in it ----------------------------------------------------------------------------------------------- */

/* A table that has memory for `have` of its room gets what it needs, in whole pages. 0 or -ENOMEM. */
static int fill_table(const struct file *f, unsigned i, struct need have, struct need *need)
{
    const struct kvmap_table *t = &head_of(f)->table[i];
    uint64_t index = whole_pages(need->places * sizeof(struct kvtab_place)), arena = whole_pages(need->cap);
    uint64_t old_index = have.places * sizeof(struct kvtab_place);

    if (index > old_index && file_fill(f, t->index + old_index, index - old_index) < 0)
        return -ENOMEM;
    if (arena > have.cap && file_fill(f, t->arena + have.cap, arena - have.cap) < 0)
        return -ENOMEM;
    need->places = (uint32_t)MIN(index / sizeof(struct kvtab_place), t->places);
    need->cap = MIN(arena, t->room);
    return 0;
}

static int more(struct kvtab *t, size_t cap, uint32_t places, void *arg);

static void move_table(struct kvs_share *s, const struct file *to, unsigned i, const struct need *need)
{
    struct kvmap_head *h = head_of(to);
    struct kvtab_room room = {
        .arena = to->base + h->table[i].arena,
        .cap = need->cap,
        .index = (struct kvtab_place *)(void *)(to->base + h->table[i].index),
        .places = need->places,
        .lender = {more, s},
    };
    int rc = kvtab_move(s->tab[i], &room);

    assert(rc == 0);
    atomic_store_explicit(&h->places[i], s->tab[i]->places, memory_order_relaxed);
}

static struct need need_of(const struct kvtab *t)
{
    return (struct need){MAX(t->used, KVTAB_BASE), t->places};
}

/* Move all to a new file. Nothing has changed where that fails. */
static int move_to_file(struct kvs_share *s, struct need need[KVMAP_TABLES])
{
    struct kvmap_head h = lay_out(need, s->slots);
    struct file f = {.fd = -1};
    int rc = file_open(&f, h.size);

    if (rc < 0)
        return rc;
    rc = file_fill(&f, 0, h.table[0].index);
    if (rc == 0)
        memcpy(f.base, &h, sizeof(h));
    for (unsigned i = 0; rc == 0 && i < KVMAP_TABLES; i++)
        rc = fill_table(&f, i, (struct need){0}, &need[i]);
    if (rc < 0) {
        munmap(f.base, f.size);
        close(f.fd);
        return rc;
    }
    for (unsigned i = 0; i < KVMAP_TABLES; i++)
        move_table(s, &f, i, &need[i]);
    if (s->file.fd >= 0)
        memcpy(waiting_of(&f), waiting_of(&s->file), s->slots * sizeof(uint32_t));
    atomic_store_explicit(&head_of(&f)->seq, s->is_open ? 1 : 0, memory_order_release);
    file_close(&s->file);
    s->file = f;
    return 0;
}

static int move_to_heap(struct kvs_share *s, const struct need need[KVMAP_TABLES])
{
    struct kvtab_room room[KVMAP_TABLES] = {0};
    bool ok = true;

    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        room[i].cap = need[i].cap;
        room[i].places = need[i].places;
        room[i].arena = malloc(need[i].cap);
        room[i].index = calloc(need[i].places + (size_t)1, sizeof(struct kvtab_place));
        ok = ok && room[i].arena != NULL && room[i].index != NULL;
    }
    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        if (!ok || kvtab_move(s->tab[i], &room[i]) < 0) {
            free(room[i].arena);
            free(room[i].index);
        }
    }
    if (!ok)
        return -ENOMEM;
    file_close(&s->file);
    return 0;
}

static int more(struct kvtab *t, size_t cap, uint32_t places, void *arg)
{
    struct kvs_share *s = arg;
    unsigned i = t == s->tab[0] ? 0 : 1;
    const struct kvmap_table *room = &head_of(&s->file)->table[i];
    struct need need[KVMAP_TABLES];

    for (unsigned k = 0; k < KVMAP_TABLES; k++)
        need[k] = need_of(s->tab[k]);
    need[i].cap = MAX(cap, t->cap);
    need[i].places = MAX(places, t->room_places);
    if (need[i].cap > room->room || need[i].places > room->places)
        return move_to_file(s, need) == 0 ? 0 : move_to_heap(s, need);
    if (fill_table(&s->file, i, (struct need){t->cap, t->room_places}, &need[i]) < 0)
        return move_to_heap(s, need);
    t->cap = need[i].cap;
    t->room_places = need[i].places;
    return 0;
}

/* --- what kvs.c does with it ------------------------------------------------------------------------------------ */

int kvs_share_new(struct kvs_share **out, struct kvtab *first, struct kvtab *second, uint32_t slots)
{
    struct need need[KVMAP_TABLES] = {need_of(first), need_of(second)};
    struct kvs_share *s = calloc(1, sizeof(*s));
    int rc;

    if (s == NULL)
        return -ENOMEM;
    *s = (struct kvs_share){.tab = {first, second}, .slots = slots, .file = {.fd = -1}};
    rc = move_to_file(s, need);
    if (rc < 0)
        free(s);
    else
        *out = s;
    return rc;
}

void kvs_share_free(struct kvs_share *s)
{
    if (s == NULL)
        return;
    file_close(&s->file);
    free(s);
}

int kvs_share_fd(const struct kvs_share *s)
{
    return s->file.fd < 0 ? -ENOMEM : s->file.fd;
}

void kvs_share_begin(struct kvs_share *s)
{
    struct kvmap_head *h;

    if (s == NULL)
        return;
    assert(!s->is_open);
    s->is_open = true;
    if (s->file.fd < 0)
        return;
    h = head_of(&s->file);
    atomic_store_explicit(&h->seq, atomic_load_explicit(&h->seq, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

void kvs_share_end(struct kvs_share *s)
{
    struct kvmap_head *h;

    if (s == NULL)
        return;
    s->is_open = false;
    if (s->file.fd < 0)
        return;
    h = head_of(&s->file);
    for (unsigned i = 0; i < KVMAP_TABLES; i++)
        atomic_store_explicit(&h->places[i], s->tab[i]->places, memory_order_relaxed);
    atomic_store_explicit(&h->seq, atomic_load_explicit(&h->seq, memory_order_relaxed) + 1, memory_order_release);
}

void kvs_share_waits(struct kvs_share *s, uint32_t slot, uint32_t hash)
{
    if (s != NULL && s->file.fd >= 0)
        atomic_fetch_or_explicit(&waiting_of(&s->file)[slot], kvmap_bit(hash), memory_order_relaxed);
}

void kvs_share_waits_no_more(struct kvs_share *s, uint32_t slot)
{
    if (s != NULL && s->file.fd >= 0)
        atomic_store_explicit(&waiting_of(&s->file)[slot], 0, memory_order_relaxed);
}
