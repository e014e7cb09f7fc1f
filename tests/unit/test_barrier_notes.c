/* SPDX-License-Identifier: BSD-3-Clause */
/* Of which barriers it is asked whether they can be complete, and what is remembered of that. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include "server/barrier.h"
#include "server/barrier_msg.h"

/* "set:round set:round " of what a walk finds. */
struct found {
    char text[100];
    size_t len;
};

static void on_found(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct found *f = arg;

    f->len += (size_t)snprintf(f->text + f->len, sizeof(f->text) - f->len, "%u:%u ", id->set, (unsigned)round);
}

static const char *found(const struct barriers *b, void (*each)(const struct barriers *, barriers_fn, void *))
{
    static struct found f;

    f = (struct found){.len = 0};
    each(b, on_found, &f);
    return f.text;
}

static int two_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    static const uint32_t kids[] = {1};

    (void)id;
    (void)arg;
    *need = (struct barrier_need){.local = 2, .kids = kids, .total = 4};
    return 0;
}

static void two_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    (void)id, (void)round, (void)arg;
    cr_expect_eq(count, 3);
}

static void two_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    (void)id, (void)done, (void)arg;
}

Test(barrier_notes, who_is_awaited_and_what_is_noted)
{
    static const struct barrier_ops ops = {two_need, two_up, two_release};
    struct barriers *b = barriers_new(2, 1, &ops, NULL);
    struct barrier_id one = {.set = 1, .group = span_of("WORLD")}, two = {.set = 2, .group = span_of("WORLD")};

    cr_expect_eq(barriers_entered(b, &one, 0), 0);
    cr_expect_str_eq(found(b, barriers_each_noted), "");
    barriers_enter(b, &one, 0, NULL);
    barriers_child(b, &two, 0, 0, 1, NULL);
    cr_expect_eq(barriers_entered(b, &one, 0), 1);
    cr_expect_eq(barriers_entered(b, &one, 1), 0);
    cr_expect_str_eq(found(b, barriers_each_awaiting), "1:0 2:0 ");
    barriers_enter(b, &one, 1, NULL);
    barriers_child(b, &one, 0, 0, 1, NULL);
    cr_expect_str_eq(found(b, barriers_each_awaiting), "2:0 ", "what was sent up is the parent's care");
    barriers_release(b, &one, 0, 0, NULL);
    cr_expect_eq(barriers_entered(b, &one, 1), 1);

    cr_expect(barriers_note(b, &one, 4));
    cr_expect_not(barriers_note(b, &one, 4));
    cr_expect_not(barriers_note(b, &one, 3));
    cr_expect(barriers_note(b, &one, 5));
    struct barrier_id other = {.set = 9, .group = span_of("7")};
    cr_expect(barriers_note(b, &other, 0));
    cr_expect_str_eq(found(b, barriers_each_noted), "1:5 9:0 ");
    barriers_note_no_more(b, &one);
    cr_expect_not(barriers_note(b, &one, 6));
    cr_expect_str_eq(found(b, barriers_each_noted), "9:0 ");
    barriers_free(b);
}

/* An entry into one that has failed is answered and not counted: nobody is to be missed in it. */
Test(barrier_notes, of_what_has_failed_nothing_is_noted)
{
    static const struct barrier_ops ops = {two_need, two_up, two_release};
    struct barriers *b = barriers_new(2, 1, &ops, NULL);
    struct barrier_id one = {.set = 1, .group = span_of("WORLD")}, two = {.set = 2, .group = span_of("WORLD")};
    struct barrier_id three = {.set = 3, .group = span_of("WORLD")};

    barriers_note(b, &one, 0);
    barriers_note(b, &two, 0);
    barriers_break_one(b, &one, -EIO);
    cr_expect_str_eq(found(b, barriers_each_noted), "2:0 ");
    cr_expect_not(barriers_note(b, &one, 1));
    barriers_break(b, -EIO);
    cr_expect_str_eq(found(b, barriers_each_noted), "");
    cr_expect_not(barriers_note(b, &three, 0));
    barriers_free(b);
}

Test(barrier_notes, texts)
{
    static const struct {
        struct barrier_id id;
        uint64_t round;
        const char *text;
    } cases[] = {
        {{.group = {"WORLD", 5}}, 0, "barrier 1"},
        {{.group = {"WORLD", 5}, .tag = -3, .set = 2}, 4, "barrier 5 with tag -3 in session 2"},
        {{.group = {"NODE", 4}}, 0, "barrier 1 of its node"},
        {{.group = {"0-8/4,9", 7}, .tag = 7}, 1, "barrier 2 of ranks 0-8/4,9 with tag 7"},
    };
    char text[100];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        barrier_text(&cases[i].id, cases[i].round, text, sizeof(text));
        cr_expect_str_eq(text, cases[i].text);
    }
}
