/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - the common part of all bootstrap methods: who is awaited, for how long, and what is said when it fails
 * */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bootstrap/boot.h"
#include "bootstrap/report.h"
#include "common/io/log.h"
#include "common/util.h"

#define WORDS_MAX 300 /* bytes of a host's words that are kept */
#define WAITING_NAMES_MAX 100
#define TELL_FIRST_MS 10000
#define TELL_EVERY_MS 60000

static void free_all(struct bootstrap *b)
{
    if (b->method_data != NULL)
        b->method->free(b);
    for (uint32_t i = 0; b->node != NULL && i < b->conf->plan->node_count; i++) {
        free(b->node[i].words);
        free(b->node[i].elsewhere);
        free(b->node[i].refused);
    }
    free(b->node);
    free(b->proc);
    free(b);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct bootstrap *b = h->data;

    if (--b->handles == 0 && b->closing)
        free_all(b);
}

void boot_timer_init(struct bootstrap *b, uv_timer_t *t)
{
    uv_timer_init(b->loop, t);
    t->data = b;
    b->handles++;
}

void boot_handle_close(struct bootstrap *b, uv_handle_t *h)
{
    assert(h->data == b);
    uv_close(h, on_handle_closed);
}

int64_t boot_proc_add(struct bootstrap *b, struct proc *p)
{
    if (b->proc_count == b->proc_cap) {
        uint32_t cap = b->proc_cap == 0 ? 16 : b->proc_cap * 2;
        struct proc **more = realloc(b->proc, cap * sizeof(struct proc *));

        if (more == NULL)
            return -ENOMEM;
        b->proc = more;
        b->proc_cap = cap;
    }
    b->proc[b->proc_count] = p;
    return (int64_t)BOOT_ID_BASE + b->proc_count++;
}

static void stop_timers(struct bootstrap *b)
{
    uv_timer_stop(&b->stall);
    uv_timer_stop(&b->tell);
    uv_timer_stop(&b->settle);
}

void boot_fail(struct bootstrap *b, const char *text)
{
    if (b->over || b->closing)
        return;
    b->over = true;
    stop_timers(b);
    b->ops.on_failed(text, b->ops.arg);
}

static bool is_open(const struct boot_node *n)
{
    return n->state == NODE_WAITING || n->state == NODE_KEYED;
}

/* Is `n` to be named when others have failed for good? Where it failed as well, or is about to be tried again. */
static bool is_to_blame(const struct boot_node *n)
{
    return n->state == NODE_FAILED || (n->state == NODE_WAITING && n->tries > 0 && !n->logging_in && n->words != NULL);
}

/* One message for all nodes that have not joined, or for those that are to blame. */
static void fail_with_report(struct bootstrap *b, bool all)
{
    struct report *r = report_new();
    struct buf why = {0}, text = {0};

    for (uint32_t i = 0; r != NULL && i < b->conf->plan->node_count; i++) {
        const struct boot_node *n = &b->node[i];

        if (!is_to_blame(n) && !(all && is_open(n)))
            continue;
        why.len = 0;
        if (n->refused != NULL)
            buf_add_str(&why, n->refused);
        else
            b->method->why(b, i, &why);
        report_add(r, b->label != NULL ? b->label[i] : b->conf->plan->node[i].login, buf_str(&why));
    }
    if (r == NULL || report_text(r, &text) < 0)
        boot_fail(b, "out of memory while reporting hosts that could not be started");
    else
        boot_fail(b, buf_str(&text));
    report_free(r);
    buf_done(&why);
    buf_done(&text);
}

static void on_stall(uv_timer_t *t)
{
    struct bootstrap *b = t->data;
    struct buf text = {0};

    if (b->method->stalled == NULL) {
        fail_with_report(b, true);
        return;
    }
    b->method->stalled(b, &text);
    boot_fail(b, buf_str(&text) != NULL ? text.p : "not all have come");
    buf_done(&text);
}

static void on_tell(uv_timer_t *t)
{
    const struct bootstrap *b = t->data;
    uint32_t count = b->conf->plan->node_count;
    struct buf who = {0};

    b->method->awaited(b, &who);
    if (buf_str(&who) != NULL)
        log_warn("waiting for %s: %" PRIu32 " of %" PRIu32 " are here", who.p, count - b->awaited, count);
    buf_done(&who);
}

static void on_settle(uv_timer_t *t)
{
    fail_with_report(t->data, false);
}

/* Report at once when nobody is left whose fate is open; from the loop, as the caller may be boot_open(). */
static void settle(struct bootstrap *b)
{
    if (b->failed_count == 0 || b->over || b->closing)
        return;
    if (b->failed_count == b->awaited)
        uv_timer_start(&b->settle, on_settle, 0, 0);
    else if (!uv_is_active((uv_handle_t *)&b->settle))
        uv_timer_start(&b->settle, on_settle, BOOT_SETTLE_MS, 0);
}

/* Its owner goes on without it. */
static void tell_login_failed(struct bootstrap *b, uint32_t node)
{
    struct buf why = {0};

    b->method->why(b, node, &why);
    if (!b->over && !b->closing)
        b->ops.on_login_failed(node, buf_str(&why) != NULL ? why.p : "out of memory", b->ops.arg);
    buf_done(&why);
}

void boot_node_failed(struct bootstrap *b, uint32_t node)
{
    struct boot_node *n = &b->node[node];

    if (!is_open(n))
        return;
    n->state = NODE_FAILED;
    if (b->ops.on_login_failed != NULL) {
        tell_login_failed(b, node);
        return;
    }
    b->failed_count++;
    settle(b);
}

static void keep_words(char **kept, struct span text)
{
    struct buf shown = {0};
    char *words;

    if (text.n > WORDS_MAX)
        text.n = WORDS_MAX;
    if (buf_add_escaped(&shown, text) < 0 || buf_str(&shown) == NULL || (words = strdup(shown.p)) == NULL)
        words = NULL; /* out of memory: better no words than none of the others */
    buf_done(&shown);
    if (words == NULL)
        return;
    free(*kept);
    *kept = words;
}

void boot_node_words(struct boot_node *n, struct span text)
{
    keep_words(&n->words, text);
}

void boot_node_key(struct bootstrap *b, uint32_t node, const struct keyline_found *found)
{
    b->keys++;
    if (b->node[node].state == NODE_WAITING)
        b->node[node].state = NODE_KEYED;
    b->ops.on_key(node, found->run, found->index, found->key, b->ops.arg);
}

void boot_fail_two_keys(struct bootstrap *b, uint32_t node, const char *first, const struct keyline_found *found)
{
    struct buf text = {0};

    buf_printf(&text, "%s: start: two different keys for run %" PRIu32 " index %" PRIu32 ": %s and %s",
               boot_host(b, node), found->run, found->index, first, found->key);
    boot_fail(b, text.p != NULL && buf_str(&text) != NULL ? text.p : "two different keys for one provider");
    buf_done(&text);
}

void boot_why_no_connection(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    const char *words = b->node[node].words;

    if (words != NULL) {
        buf_printf(out, "connect: %s", words + (strncmp(words, "pmi-start: ", 11) == 0 ? 11 : 0));
        return;
    }
    buf_add_str(out, "connect: started, but did not reach ");
    for (size_t i = 0; b->conf->addrs[i] != NULL; i++)
        buf_printf(out, strchr(b->conf->addrs[i], ':') != NULL ? "%s[%s]:%u" : "%s%s:%u", i > 0 ? " or " : "",
                   b->conf->addrs[i], b->conf->port);
    buf_add_str(out, " (check the network, --interface, --port)");
}

static const struct boot_method_ops *method_of(enum boot_method method)
{
    switch (method) {
    case BOOT_LOCAL:
        return &boot_local;
    case BOOT_RSH:
        return &boot_rsh;
    case BOOT_MANUAL:
        return &boot_manual;
    case BOOT_SLURM:
        return &boot_slurm;
    case BOOT_K8S:
        return &boot_k8s;
    case BOOT_AUTO:
        break;
    }
    assert(false && "the plan has decided the method");
    return NULL;
}

static void init_nodes(struct bootstrap *b)
{
    for (uint32_t i = 0; i < b->conf->plan->node_count; i++) {
        bool self = (int64_t)i == b->conf->plan->self;

        b->node[i].state = self ? NODE_SELF : NODE_WAITING;
        b->node[i].exit_code = -1;
        b->awaited += !self;
    }
}

static void start_stall(struct bootstrap *b)
{
    if (b->awaited > 0 && !b->over && b->ops.on_login_failed == NULL)
        uv_timer_start(&b->stall, on_stall, b->conf->conf->start_timeout_ms, 0);
}

int boot_open(uv_loop_t *loop, const struct boot_conf *conf, const struct boot_ops *ops, struct bootstrap **out,
              struct err *err)
{
    struct bootstrap *b = calloc(1, sizeof(*b));
    int rc;

    if (b != NULL)
        b->node = calloc(conf->plan->node_count, sizeof(*b->node));
    if (b == NULL || (b->node == NULL && conf->plan->node_count > 0)) {
        free(b);
        return err_set(err, -ENOMEM, "out of memory");
    }
    b->method = method_of(conf->plan->method);
    b->loop = loop;
    b->conf = conf;
    b->ops = *ops;
    init_nodes(b);
    boot_timer_init(b, &b->stall);
    boot_timer_init(b, &b->tell);
    boot_timer_init(b, &b->settle);
    rc = b->awaited > 0 ? b->method->open(b, err) : 0;
    if (rc < 0) {
        boot_close(b);
        return rc;
    }
    uv_update_time(loop); /* starting many processes takes its time */
    start_stall(b);
    if (b->awaited > 0 && b->method->awaited != NULL && isatty(STDERR_FILENO) != 1) /* a terminal has its progress */
        uv_timer_start(&b->tell, on_tell, TELL_FIRST_MS, TELL_EVERY_MS);
    *out = b;
    return 0;
}

void boot_exited(struct bootstrap *b, uint32_t id, int wstatus)
{
    if (id >= BOOT_ID_BASE && id - BOOT_ID_BASE < b->proc_count)
        proc_exited(b->proc[id - BOOT_ID_BASE], wstatus);
}

void boot_not_started(struct bootstrap *b, uint32_t id, int err_no)
{
    if (id >= BOOT_ID_BASE && id - BOOT_ID_BASE < b->proc_count)
        proc_not_started(b->proc[id - BOOT_ID_BASE], err_no);
}

int64_t boot_node_of(const struct bootstrap *b, uint32_t run, uint32_t index)
{
    return b->method_data != NULL ? b->method->node_of(b, run, index) : -1;
}

void boot_joined(struct bootstrap *b, uint32_t node, bool attached)
{
    struct boot_node *n = &b->node[node];

    if (n->state == NODE_JOINED || n->state == NODE_SELF)
        return;
    if (n->state == NODE_FAILED)
        b->failed_count--;
    n->state = NODE_JOINED;
    b->awaited--;
    if (b->over || b->closing)
        return;
    if (b->awaited == 0)
        stop_timers(b);
    else
        start_stall(b);
    settle(b);
    if (b->method->joined != NULL)
        b->method->joined(b, node, attached);
}

int boot_login(struct bootstrap *b, uint32_t node, struct err *err)
{
    return b->over || b->closing || b->node[node].state != NODE_WAITING ? 0 : b->method->login(b, node, err);
}

void boot_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    b->method->why(b, node, out);
}

void boot_cancel(struct bootstrap *b, uint32_t node)
{
    if (!b->over && !b->closing && b->method->cancel != NULL)
        b->method->cancel(b, node);
}

void boot_unjoined(struct bootstrap *b, uint32_t node)
{
    struct boot_node *n = &b->node[node];

    if (n->state != NODE_JOINED)
        return;
    n->state = NODE_WAITING;
    n->logging_in = false;
    b->awaited++;
    start_stall(b);
}

void boot_words(struct bootstrap *b, uint32_t node, const char *text)
{
    keep_words(&b->node[node].elsewhere, span_of(text));
}

void boot_refused(struct bootstrap *b, uint32_t node, const char *reason)
{
    struct boot_node *n = &b->node[node];

    if (!is_open(n))
        return;
    free(n->refused);
    n->refused = strdup(reason);
    boot_node_failed(b, node);
}

void boot_stranger(struct bootstrap *b)
{
    b->strangers++;
}

uint32_t boot_waiting(const struct bootstrap *b)
{
    return b->awaited;
}

void boot_waiting_names(const struct bootstrap *b, struct buf *out)
{
    const char **names = calloc(b->conf->plan->node_count, sizeof(*names));
    size_t count = 0;

    for (uint32_t i = 0; names != NULL && i < b->conf->plan->node_count; i++)
        if (is_open(&b->node[i]) || b->node[i].state == NODE_FAILED)
            names[count++] = boot_host(b, i);
    if (names != NULL)
        hostnames_fold(names, count, WAITING_NAMES_MAX, out);
    free(names);
}

void boot_done(struct bootstrap *b)
{
    b->over = true;
    stop_timers(b);
}

void boot_close(struct bootstrap *b)
{
    if (b == NULL || b->closing)
        return;
    b->over = true;
    b->closing = true;
    for (uint32_t i = 0; i < b->proc_count; i++)
        proc_stop(b->proc[i]);
    if (b->method->close != NULL && b->method_data != NULL)
        b->method->close(b);
    boot_handle_close(b, (uv_handle_t *)&b->stall);
    boot_handle_close(b, (uv_handle_t *)&b->tell);
    boot_handle_close(b, (uv_handle_t *)&b->settle);
}
