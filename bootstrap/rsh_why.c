/* SPDX-License-Identifier: BSD-3-Clause */
/* rsh_why.c - what ssh and the script said, and what it means for one host */
#include <inttypes.h>
#include <sys/wait.h>
#include "bootstrap/rsh.h"
#include "common/util.h"

static bool has_any(struct span words, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memmem(words.p, words.n, list[i], strlen(list[i])) != NULL)
            return true;
    return false;
}

/* By pmi-start-ssh: no login was tried. */
static bool is_own_ssh(struct span words)
{
    return span_starts(words, "cannot run ");
}

/* As OpenSSH words them; what a busy sshd says ("kex_exchange_identification", reset, closed) and what the network says
 * may be over the next time. */
bool rsh_words_decisive(struct span words)
{
    static const char *const decisive[] = {
        "Permission denied",
        "Too many authentication failures",
        "Host key verification failed",
        "has changed and you have requested strict checking", /* the best line of many about a changed key */
        "Could not resolve hostname",
    };

    return is_own_ssh(words) || has_any(words, decisive, ARRAY_SIZE(decisive));
}

/* An sshd over its MaxStartups, or a gateway to the hosts over its own, hangs up before it has said who it is. */
bool rsh_words_crowded(struct span words)
{
    static const char *const crowded[] = {"kex_exchange_identification", "Connection reset by", "Connection closed by"};

    return has_any(words, crowded, ARRAY_SIZE(crowded));
}

/* By glibc's and musl's loader? They say "not found" of a library, or of a version: the program itself is there. */
static bool is_loaders(struct span words)
{
    static const char *const loader[] = {"shared librar", "symbol lookup error", "Error relocating", "required by"};

    return has_any(words, loader, ARRAY_SIZE(loader));
}

static const char *stage_of(const struct boot_node *n, struct span words)
{
    static const char *const not_found[] = {"not found", "No such file", "Unknown command"};
    static const char *const not_allowed[] = {"cannot execute", "Exec format error"};

    if (span_starts(words, "pmi-start: ") || is_loaders(words))
        return "start";
    if (is_own_ssh(words))
        return "login";
    if (n->exit_code == 127 || has_any(words, not_found, ARRAY_SIZE(not_found)))
        return "not found";
    if (n->exit_code == 126 || has_any(words, not_allowed, ARRAY_SIZE(not_allowed)))
        return "not executable";
    return "login";
}

static void why_by_words(const struct boot_node *n, struct buf *out)
{
    struct span words = span_of(n->words);
    const char *stage = stage_of(n, words);
    size_t skip = span_starts(words, "pmi-start: ") ? sizeof("pmi-start: ") - 1 : 0;

    buf_printf(out, "%s: %s", stage, n->words + skip);
}

static void why_by_script(const struct rsh_run *run, struct buf *out)
{
    buf_add_str(out, "login: the bootstrap script ");
    proc_end_text(&run->proc, out);
    if (run->proc.err_no == 0)
        buf_add_str(out, " and brought nothing from this host");
    if (run->last_noise != NULL)
        buf_printf(out, " (%s)", run->last_noise);
}

void rsh_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    const struct rsh *r = b->method_data;
    const struct boot_node *n = &b->node[node];
    const struct rsh_run *run = n->run > 0 ? r->run[n->run - 1] : NULL;
    uint64_t limit_ms = b->conf->limit_ms > 0 ? b->conf->limit_ms : b->conf->conf->start_timeout_ms;
    bool started = n->words != NULL && span_starts(span_of(n->words), "pmi-start: ");
    bool keyed = n->state == NODE_KEYED || (run != NULL && run->key[n->index] != NULL);

    if (keyed && n->words == NULL && n->exit_code > 0)
        buf_printf(out, "start: ended with exit status %d before it had joined", n->exit_code);
    else if (keyed)
        boot_why_no_connection(b, node, out);
    else if (b->strangers > 0 && b->keys == 0 && (started || n->words == NULL))
        buf_add_str(out, "start: providers connect, but the script does not pass on the providers' output");
    else if (n->words != NULL)
        why_by_words(n, out);
    else if (run == NULL && n->elsewhere != NULL)
        buf_printf(out, "login: %s", n->elsewhere);
    else if (run == NULL && b->ops.login_from != NULL && b->ops.login_from(node, b->ops.arg) != NULL)
        buf_printf(out, "login: no word of it from %s, to which it was left", b->ops.login_from(node, b->ops.arg));
    else if (run == NULL)
        buf_add_str(out, "login: its turn did not come");
    else if (n->exit_code >= 0)
        buf_printf(out, "start: ended with exit status %d before a provider was up", n->exit_code);
    else if (run->ended)
        why_by_script(run, out);
    else
        buf_printf(out, "login: no answer within %" PRIu64 ".%" PRIu64 " s", limit_ms / 1000, limit_ms % 1000 / 100);
}
