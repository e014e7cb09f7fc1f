/* SPDX-License-Identifier: BSD-3-Clause */
/* command.c - a provider's command line */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "bootstrap/command.h"
#include "common/path.h"
#include "common/strv.h"

static int add_word(char ***argv, struct buf *word)
{
    int rc = buf_str(word) == NULL ? -ENOMEM : strv_add(argv, word->p);

    word->len = 0;
    return rc;
}

static int add_addrs(const struct boot_conf *bc, char ***argv, struct buf *word)
{
    int rc = buf_add_str(word, "--pmi-port=");

    for (size_t i = 0; rc == 0 && bc->addrs[i] != NULL; i++)
        rc = buf_printf(word, "%s%s:%u", i > 0 ? "," : "", bc->addrs[i], bc->port);
    return rc < 0 ? rc : add_word(argv, word);
}

/* Whoever runs it elsewhere stands in another directory. */
static int add_secret(const char *file, struct buf *word)
{
    char *path;
    int rc = path_absolute(file, &path);

    if (rc < 0)
        return rc;
    rc = buf_printf(word, "--pmi-secret-file=%s", path);
    free(path);
    return rc;
}

static int add_key(const struct boot_conf *bc, char ***argv, struct buf *word)
{
    int rc = bc->key[0] != '\0' ? buf_printf(word, "--pmi-key=%s", bc->key) : add_secret(bc->conf->secret_file, word);

    return rc < 0 ? rc : add_word(argv, word);
}

static int add_network(const struct conf *conf, char ***argv, struct buf *word)
{
    int rc = 0;

    if (conf->interface != NULL) {
        rc = buf_printf(word, "--pmi-interface=%s", conf->interface);
        if (rc == 0)
            rc = add_word(argv, word);
    }
    if (rc == 0 && conf->port.given && conf->port.range) {
        rc = buf_printf(word, "--pmi-ports=%u-%u", conf->port.low, conf->port.high);
        if (rc == 0)
            rc = add_word(argv, word);
    }
    return rc;
}

static int add_numbers(const struct boot_conf *bc, uint32_t size, uint32_t run, char ***argv, struct buf *word)
{
    int rc = buf_printf(word, "--pmi-size=%" PRIu32, size);

    if (rc == 0)
        rc = add_word(argv, word);
    if (rc == 0)
        rc = buf_printf(word, "--pmi-run=%" PRIu32, run);
    if (rc == 0)
        rc = add_word(argv, word);
    if (rc == 0)
        rc = buf_printf(word, "--pmi-start-timeout=%" PRIu64 "ms", bc->conf->start_timeout_ms);
    return rc < 0 ? rc : add_word(argv, word);
}

int command_argv(const struct boot_conf *bc, const char *program, uint32_t size, uint32_t run, enum attach_mode attach,
                 char ***argv)
{
    static const char *const attach_words[] = {
        [ATTACH_AUTO] = "--pmi-attach=auto",
        [ATTACH_YES] = "--pmi-attach=yes",
        [ATTACH_NO] = "--pmi-attach=no",
    };
    struct buf word = {0};
    int rc = strv_add(argv, program);

    if (rc == 0)
        rc = add_addrs(bc, argv, &word);
    if (rc == 0)
        rc = add_numbers(bc, size, run, argv, &word);
    if (rc == 0)
        rc = add_key(bc, argv, &word);
    if (rc == 0)
        rc = strv_add(argv, attach_words[attach]);
    if (rc == 0)
        rc = add_network(bc->conf, argv, &word);
    buf_done(&word);
    return rc;
}

static bool is_safe(const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:,=-+@%";

    return word[0] != '\0' && word[strspn(word, safe)] == '\0';
}

int command_line(char *const *argv, struct buf *out, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; argv[i] != NULL; i++)
        if (!is_safe(argv[i]))
            return err_set(err, -EINVAL,
                           "'%s' cannot be given to the shell of another host, where only letters, digits and "
                           "/._:,=-+@%% are safe%s",
                           argv[i], i == 0 ? "; name pmi-start's path there with --remote-path" : "");
    for (size_t i = 0; rc == 0 && argv[i] != NULL; i++)
        rc = buf_printf(out, "%s%s", i > 0 ? " " : "", argv[i]);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}
