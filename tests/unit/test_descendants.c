/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/descendants.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Forks without end, up to 200 processes at a time. */
static void bomb(void)
{
    struct rlimit procs = {200, 200};

    setpgid(0, 0);
    if (getuid() != 0)
        setrlimit(RLIMIT_NPROC, &procs);
    for (int i = 0; i < 2000; i++) {
        pid_t pid = fork();
        if (pid == 0) /* the parent ends, the child goes on: no pid lives long */
            continue;
        if (pid > 0)
            _exit(0);
    }
    pause();
}

Test(descendants, one_that_forks_and_ends_all_the_time_is_caught)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            bomb();
    cr_expect_eq(descendants_kill_all(10000), 0);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
}

Test(descendants, nothing_to_do)
{
    cr_expect_eq(descendants_kill_all(0), 0);
}

static void make_file(const char *root, const char *name, const char *text)
{
    char path[PATH_MAX], *p;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

static bool has(const struct descendants *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->p[i].pid == pid)
            return true;
    return false;
}

static void remove_tree(const char *root)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

/* A made-up proc file system, as not every kernel has the children file. */
Test(descendants, read_from_children_files)
{
    char root[] = "/tmp/test_descendants.XXXXXX";
    struct descendants list = {0};
    pid_t keep = 12;

    cr_assert_not_null(mkdtemp(root));
    make_file(root, "10/task/10/children", "11 12 ");
    make_file(root, "10/task/15/children", "13 ");
    make_file(root, "11/task/11/children", "");
    make_file(root, "12/task/12/children", "14 ");
    make_file(root, "13/task/13/children", "20 ");
    cr_expect_eq(descendants_list(&list, root, 10, NULL, 0), 0);
    cr_expect_eq(list.count, 5);
    cr_expect(has(&list, 11) && has(&list, 12) && has(&list, 13) && has(&list, 14) && has(&list, 20));
    cr_expect_eq(descendants_list(&list, root, 10, &keep, 1), 0);
    cr_expect_eq(list.count, 3);
    cr_expect(!has(&list, 12) && !has(&list, 14));
    descendants_done(&list);
    remove_tree(root);
}

Test(descendants, read_from_stat_files)
{
    char root[] = "/tmp/test_descendants.XXXXXX";
    struct descendants list = {0};
    pid_t keep = 13;

    cr_assert_not_null(mkdtemp(root));
    make_file(root, "1/stat", "1 (init) S 0 1 1");
    make_file(root, "10/stat", "10 (a) S 1 10 10");
    make_file(root, "11/stat", "11 (b) c) 99 (d) R 10 11 11");
    make_file(root, "12/stat", "12 (x) S 11 11 11");
    make_file(root, "13/stat", "13 (y) Z 12 11 11");
    make_file(root, "14/stat", "14 (other) S 1 1 1");
    make_file(root, "15/stat", "rubbish");
    make_file(root, "self/stat", "16 (z) S 10 1 1");
    cr_expect_eq(descendants_list(&list, root, 10, NULL, 0), 0);
    cr_expect_eq(list.count, 3);
    cr_expect(list.p[0].pid == 11 && list.p[0].pgrp == 11 && list.p[1].pid == 12 && list.p[2].pid == 13);
    cr_expect_eq(descendants_scan(&list, root, 10, &keep, 1), 0);
    cr_expect_eq(list.count, 2);
    descendants_done(&list);
    remove_tree(root);
}
