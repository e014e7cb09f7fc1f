/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/scratch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/io/log.h"

Test(scratch, without_the_page_there_are_none)
{
    cr_expect_null(scratch_make(SCRATCH_TMP, "/tmp"));
    cr_expect_null(scratch_path(SCRATCH_TMP));
    scratch_remove();
}

Test(scratch, another_process_removes_what_this_one_has_made)
{
    char name[300], sub[400], kept[300];
    struct stat st;
    pid_t pid;

    scratch_share();
    cr_assert_not_null(scratch_make(SCRATCH_TMP, "/tmp"));
    cr_expect_null(scratch_path(SCRATCH_SHM));
    snprintf(name, sizeof(name), "%s", scratch_path(SCRATCH_TMP));
    cr_expect(stat(name, &st) == 0 && (st.st_mode & 0777) == 0700);
    snprintf(sub, sizeof(sub), "%s/a", name);
    cr_assert_eq(mkdir(sub, 0700), 0);
    snprintf(sub, sizeof(sub), "%s/a/f", name);
    close(open(sub, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    snprintf(kept, sizeof(kept), "/tmp/scratch-test.%d", (int)getpid());
    cr_assert_eq(mkdir(kept, 0700), 0);
    snprintf(sub, sizeof(sub), "%s/link", name);
    cr_assert_eq(symlink(kept, sub), 0);
    pid = fork();
    if (pid == 0) {
        scratch_remove();
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    cr_expect_eq(stat(name, &st), -1);
    cr_expect_eq(stat(kept, &st), 0, "a link is not followed");
    cr_expect_null(scratch_path(SCRATCH_TMP));
    rmdir(kept);
}

static char said[600];

static void note(enum log_level level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    snprintf(said, sizeof(said), "%s", line);
}

Test(scratch, where_none_can_be_made_it_is_in_tmp_and_that_is_said)
{
    const char *path;

    scratch_share();
    log_set_sink(note, NULL);
    path = scratch_make(SCRATCH_TMP, "/proc/none");
    cr_assert_not_null(path);
    cr_expect_eq(strncmp(path, "/tmp/", 5), 0);
    cr_expect_str_eq(said, "cannot make a folder in /proc/none (No such file or directory): /tmp is used instead");
    scratch_remove();
    cr_expect_neq(access(path, F_OK), 0);
    log_set_sink(NULL, NULL);
}
