/* SPDX-License-Identifier: BSD-3-Clause */
/* cmdline.c - cut the command line into options and parts
 *
 * By hand, not by getopt: options end at the first COMMAND, start again behind a `:`, and what other launchers call
 * their options is answered by name.
 */
#include "conf/cmdline.h"

#include <stdlib.h>
#include <string.h>
#include "common/num.h"

/* Where the reading is. */
struct reader {
    struct cmdline *cl;
    char *const *arg; /* the next argument; NULL there: the end */
    bool literal;     /* a `--` was seen: `:` is an argument like any other */
    bool over;        /* --help or --version */
};

static int add_part(struct cmdline *cl)
{
    struct given_part *p = realloc(cl->part, (cl->part_count + 1) * sizeof(*p));

    if (p == NULL)
        return -ENOMEM;
    cl->part = p;
    p[cl->part_count++] = (struct given_part){0};
    return 0;
}

static int add_given(struct reader *r, const struct option *o, const char *text, bool by_letter)
{
    struct cmdline *cl = r->cl;
    struct given *p = realloc(cl->given, (cl->given_count + 1) * sizeof(*p));

    if (p == NULL)
        return -ENOMEM;
    cl->given = p;
    p[cl->given_count++] = (struct given){o, text, by_letter, cl->part_count - 1};
    r->over = o->flags & OPTION_ENDS;
    return 0;
}

static int unknown(struct span word, const char *arg, struct err *err)
{
    const char *habit = option_habit(word);
    const struct option *near = habit == NULL ? option_nearest(word) : NULL;

    if (habit != NULL)
        return err_set(err, -EINVAL, "no option '%s' here: %s", quoted(span_of(arg)).text, habit);
    if (near != NULL)
        return err_set(err, -EINVAL, "no option '%s' here: did you mean --%s?", quoted(span_of(arg)).text, near->name);
    return err_set(err, -EINVAL, "no option '%s' here: see pmi-start --help", quoted(span_of(arg)).text);
}

/* Is it one that may stand where we are? */
static int check_place(const struct reader *r, const struct option *o, const char *arg, struct err *err)
{
    if (o->flags & OPTION_LATER)
        return err_set(err, -EINVAL, "--%s: not in this version of pmi-start", o->name);
    if (!(o->flags & OPTION_CMDLINE))
        return unknown(SPAN_NONE, arg, err);
    if (r->cl->part_count > 1 && !(o->flags & OPTION_PART))
        return err_set(err, -EINVAL,
                       "'%s' holds for the whole run: it belongs before the first COMMAND (behind ':' are "
                       "-n, -E and --env-none)",
                       quoted(span_of(arg)).text);
    return 0;
}

static int missing_value(const struct option *o, const char *arg, struct err *err)
{
    return err_set(err, -EINVAL, "'%s' needs a value: %s", quoted(span_of(arg)).text, o->meta);
}

/* Is `next` a value rather than the command? Behind an option that can do without one it would be taken for that. */
static bool is_number_for(const struct option *o, const char *next)
{
    uint64_t v;

    return (o->flags & OPTION_BARE) && o->meta != NULL && o->max > 0 && next != NULL &&
           num_u64(span_of(next), 0, UINT64_MAX, &v) == 0;
}

static int read_long(struct reader *r, struct err *err)
{
    const char *arg = *r->arg++, *eq = strchr(arg, '=');
    struct span name = {arg + 2, eq ? (size_t)(eq - arg) - 2 : strlen(arg) - 2};
    const struct option *o = option_by_name(name);
    const char *text = eq ? eq + 1 : NULL;
    int rc = o == NULL ? unknown(name, arg, err) : check_place(r, o, arg, err);

    if (rc < 0)
        return rc;
    if (text == NULL && (o->flags & OPTION_BARE))
        text = o->implied;
    if (eq == NULL && is_number_for(o, *r->arg))
        return err_set(err, -EINVAL, "'%s %s': write %s=%s", quoted(span_of(arg)).text, *r->arg, arg, *r->arg);
    if (text == NULL && (text = *r->arg) == NULL)
        return missing_value(o, arg, err);
    if (eq == NULL && !(o->flags & OPTION_BARE))
        r->arg++;
    return add_given(r, o, text, false);
}

/* "-np", "-hosts", "-timeout": a whole word behind one dash, as mpiexec has it. */
static int check_word(const char *arg, struct err *err)
{
    struct span word = {arg + 1, strcspn(arg + 1, "=")};
    const struct option *o = option_by_name(word);

    if (word.n > 1 && option_habit(word) != NULL)
        return unknown(word, arg, err);
    if (o != NULL && o->help != NULL)
        return err_set(err, -EINVAL, "no option '%s' here: did you mean --%s?", quoted(span_of(arg)).text, o->name);
    return 0;
}

static int read_letters(struct reader *r, struct err *err)
{
    const char *arg = *r->arg++;
    int rc = check_word(arg, err);

    for (const char *p = arg + 1; rc == 0 && *p != '\0'; p++) {
        const struct option *o = option_by_letter(*p);

        rc = o == NULL ? unknown((struct span){p, 1}, arg, err) : check_place(r, o, arg, err);
        if (rc < 0)
            return rc;
        if (o->flags & OPTION_BARE) {
            rc = add_given(r, o, o->implied, true);
            continue;
        }
        if (p[1] != '\0')
            return add_given(r, o, p + 1, true);
        if (*r->arg == NULL)
            return missing_value(o, arg, err);
        return add_given(r, o, *r->arg++, true);
    }
    return rc;
}

static int read_options(struct reader *r, struct err *err)
{
    int rc = 0;

    while (rc == 0 && !r->over && *r->arg != NULL && (*r->arg)[0] == '-' && (*r->arg)[1] != '\0') {
        if (strcmp(*r->arg, "--") == 0) {
            r->arg++;
            r->literal = true;
            return 0;
        }
        rc = (*r->arg)[1] == '-' ? read_long(r, err) : read_letters(r, err);
    }
    return rc;
}

/* COMMAND and its arguments, to the end or a lone ':'. Returns whether there is a further part. */
static bool read_command(struct reader *r)
{
    struct given_part *part = &r->cl->part[r->cl->part_count - 1];

    part->argv = r->arg;
    for (; *r->arg != NULL; r->arg++, part->argc++) {
        if (!r->literal && strcmp(*r->arg, ":") == 0) {
            r->arg++;
            return true;
        }
        if (strcmp(*r->arg, "--") == 0)
            r->literal = true;
    }
    return false;
}

static int check_part(const struct cmdline *cl, bool more, struct err *err)
{
    const struct given_part *part = &cl->part[cl->part_count - 1];

    if (part->argc == 0 && (more || cl->part_count > 1))
        return err_set(err, -EINVAL, "part %zu of those between ':' has no COMMAND", cl->part_count);
    if (part->argc > 0 && part->argv[0][0] == '\0')
        return err_set(err, -EINVAL, "COMMAND is empty: ''");
    return 0;
}

int cmdline_parse(struct cmdline *cl, int argc, char *const *argv, struct err *err)
{
    struct reader r = {.cl = cl, .arg = argv + (argc > 0)};
    bool more = true;
    int rc = 0;

    *cl = (struct cmdline){0};
    while (rc == 0 && more) {
        rc = add_part(cl);
        if (rc == 0)
            rc = read_options(&r, err);
        if (rc < 0 || r.over)
            break;
        more = read_command(&r);
        rc = check_part(cl, more, err);
    }
    return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
}

void cmdline_done(struct cmdline *cl)
{
    free(cl->given);
    free(cl->part);
    *cl = (struct cmdline){0};
}
