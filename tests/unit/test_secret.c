/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/secret.h"

static char dir[64], path[128];

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/test_secret.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/key", dir);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

TestSuite(secret, .init = setup, .fini = teardown);

static void make_file(size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert(fd >= 0 && ftruncate(fd, (off_t)len) == 0 && fchmod(fd, mode) == 0);
    close(fd);
}

Test(secret, one_that_was_made_is_one)
{
    struct tls_ctx *ctx = NULL;
    struct err err = {0};
    struct stat st;

    cr_assert_eq(secret_make(path, &err), 0, "%s", err.text);
    cr_assert_eq(stat(path, &st), 0);
    cr_expect((st.st_mode & 0777) == 0600 && st.st_size == TLS_PSK_MIN);
    cr_expect_eq(secret_ctx(path, &ctx, &err), 0, "%s", err.text);
    tls_ctx_unref(ctx);
    cr_expect_eq(secret_make(path, &err), -EEXIST);
}

/* As Kubernetes mounts it. */
Test(secret, one_in_a_pod_is_a_link_to_what_the_group_may_read)
{
    char link[128];
    struct tls_ctx *ctx = NULL;
    struct err err = {0};

    make_file(TLS_PSK_MAX, 0440);
    snprintf(link, sizeof(link), "%s/link", dir);
    cr_assert_eq(symlink("key", link), 0);
    cr_expect_eq(secret_ctx(link, &ctx, &err), 0, "%s", err.text);
    tls_ctx_unref(ctx);
    unlink(link);
}

Test(secret, what_is_wrong_with_it_is_told_with_what_to_do)
{
    static const struct {
        size_t len;
        mode_t mode;
        int code;
        const char *text;
    } cases[] = {
        {0, 0600, -EINVAL, "/key has 0 bytes: a secret has 32 to 4096 (make one with --new-secret=FILE)"},
        {31, 0600, -EINVAL, "/key has 31 bytes: "},
        {TLS_PSK_MAX + 1, 0600, -EINVAL, "/key: a secret has 32 to 4096 bytes"},
        {32, 0644, -EACCES, "others cannot read (chmod 600; mounted into a pod: defaultMode: 0440, and an fsGroup)"},
        {32, 0601, -EACCES, "others cannot read"},
    };
    struct tls_ctx *ctx = NULL;
    struct err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_file(cases[i].len, cases[i].mode);
        cr_expect_eq(secret_ctx(path, &ctx, &err), cases[i].code, "%zu", i);
        cr_expect(strstr(err.text, cases[i].text) != NULL, "%s", err.text);
    }
    unlink(path);
    cr_expect_eq(secret_ctx(path, &ctx, &err), -ENOENT);
    cr_expect(strstr(err.text, "(make one with --new-secret=FILE; in a pod: the mountPath, ") != NULL, "%s", err.text);
    cr_expect_eq(secret_ctx(dir, &ctx, &err), -EISDIR);
    cr_expect(strstr(err.text, " is a directory: the secret is a file in it") != NULL, "%s", err.text);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(secret_ctx(path, &ctx, &err), -EACCES);
}
