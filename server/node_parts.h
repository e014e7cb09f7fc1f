/* SPDX-License-Identifier: BSD-3-Clause */
/* node_parts.h - the calls by which the files node*.c use each other; a part of node_priv.h, which includes it */
#ifndef SERVER_NODE_PARTS_H
#define SERVER_NODE_PARTS_H

#include "server/node_priv.h"

/* node.c */
void node_send_map(struct node *n, unsigned type, struct msg_out *m, bool data);
void node_pass_up(struct node *n, unsigned type, struct span body);
void node_unref(struct node *n);
void node_check_finished(struct node *n);
/* The task has ended, or will never run. */
void node_task_over(struct task *t, int wstatus);
/* The job that a message is about; NULL: it is over here, which is no fault. 0, or -EPROTO, -ENOENT. */
int node_find_job(const struct node *n, const struct msg_in *m, struct node_job **out, struct err *err);
int node_kid_index(const struct node *n, uint32_t place);

/* node_job.c: a job from its message to its end */
void node_job_new(struct node *n, struct span body);
void node_job_close(struct node_job *j);
void node_job_unref(struct node_job *j);
void node_job_kid_ready(struct node_job *j, uint32_t kid, const struct msg_in *m); /* NULL: it is lost */
/* A message of this job: a map with its number in it. NULL: out of memory. */
struct msg_out *node_job_map(const struct node_job *j);
/* MSG_JOB_OVER: every task of it has ended; it goes with the last of its streams. */
void node_job_over(struct node_job *j);
void node_job_check_over(struct node_job *j);
/* One of its tasks runs, or could not be started: once that is known of all, a spawned job's asker is to be told. */
void node_job_task_known(struct task *t);
/* The launcher's status for a program that cannot be run; `rc` is a negative errno. */
int node_exec_status(int rc);
/* A failure of a task, for the root to judge; `kind` of blame.h. Once a task. */
void node_task_failure(struct task *t, int kind, int code, const char *text);

/* node_task.c */
int node_tasks_prepare(struct node_job *j, struct err *err); /* -ENOMEM, -EMFILE: there is no room for so many */
struct task *node_task_of_rank(const struct node_job *j, uint32_t rank); /* NULL: it is not on this node */
/* Can tasks be started in it? The text names it. */
int dir_check(const char *dir, struct err *err);
void node_tasks_start(struct node_job *j);
void node_tasks_free(struct node_job *j);
void node_fd_watch(struct node_fd *h, int events, uv_poll_cb cb);
int node_fd_open(struct node_job *j, void *owner, struct node_fd *h, int fd);
void node_fd_close(struct node_fd *h);

/* node_pmi.c: the connections */
int node_pmi_setup(struct node_job *j);
/* A task's own PMI_FD; owned, also on failure. */
int task_pmi_open(struct task *t, int fd);
/* Read from now on: its pid is known, for what is said of it. */
void task_pmi_start(struct task *t);
void task_pmi_close(struct task *t);
/* Read what is left and judge an exit by it. */
void task_pmi_ended(struct task *t);
/* The session of `slot` in session set `set`, or NULL. */
struct pmi_conn *node_pmi_find(const struct node_job *j, uint32_t slot, uint32_t set);
void pmi_conn_flush(struct pmi_conn *c);
void pmi_conn_close(struct pmi_conn *c);
/* One that has yet to say who it is. Owns `fd`, also on failure. NULL: out of memory. */
struct pmi_conn *pmi_conn_new(struct node_job *j, int fd);
int pmi_conn_bind(struct pmi_conn *c, struct task *t, uint32_t set);
/* Its one timer, which is stopped when it is bound or closed. */
void pmi_conn_timer(struct pmi_conn *c, uv_timer_cb cb, uint64_t ms);

/* node_ask.c: what a session wants of the whole run, and the answers */
int node_ask_name(struct pmi_conn *c, uint32_t req, enum session_name_op op, struct span service, struct span port);
int node_ask_spawn(struct pmi_conn *c, uint32_t req, const struct spawn_want *want);
int node_named(struct node_job *j, const struct msg_in *m, struct err *err);
int node_spawned(struct node_job *j, const struct msg_in *m, struct err *err);

/* node_port.c: PMI_PORT */
/* A listening IPv4 socket, non-blocking; `addr` in host byte order, `port` 0: any. A negative errno. */
int node_port_listen(uint32_t addr, uint16_t port, int backlog);
int node_port_watch(struct node_job *j, int fd); /* it is the job's port, from now on; owned, also on failure */
int node_port_open(struct node_job *j);
uint16_t node_port_number(const struct node_job *j); /* 0: none */
void node_port_close(struct node_job *j);            /* strangers too */
/* A connection over PMI_PORT, from `addr`, that has yet to say who it is; owned, also on failure. */
int node_port_stranger(struct node_job *j, int fd, uint32_t addr);
void node_port_make_room(struct node_job *j); /* where there are too many strangers the oldest goes */
/* A stranger says it speaks for rank id % size, in session id / size. */
int node_port_identify(struct pmi_conn *c, uint32_t id, struct err *err);
void node_port_refused(const struct pmi_conn *c, const char *why);

/* node_serve.c: --serve */
int node_serve_open(struct node_job *j, struct err *err);
void node_serve_close(struct node_job *j);
void node_serve_free(struct serve *s);
void node_serve_start(struct node_job *j);                             /* its ranks may come */
void node_serve_address(const struct node *n, char *out, size_t size); /* "ADDR:PORT" for COMMAND */
bool node_serve_lets_in(struct node_job *j, int fd, uint32_t addr);
/* A connection has said who it is; one has closed; one was refused, which is said unless it was said often. */
void node_serve_came(struct pmi_conn *c);
void node_serve_left(struct pmi_conn *c);
void node_serve_refused(struct node_job *j, uint32_t addr, const char *why);
/* --keep-going, and a rank is lost: what can never be complete is answered. */
void node_serve_broken(struct node_job *j);
/* Have all ranks ended? Asked when COMMAND has, and of each that finalizes or goes. */
void node_serve_check(struct node *n);
void node_serve_command_over(struct node *n);
void node_serve_end(struct node *n); /* the run is being ended */

/* node_map.c: the job's keys, or its bell, for a task to map. Sends what it can of c->out, as send() does. */
int node_map_offer(struct pmi_conn *c, enum session_map what);
ssize_t node_map_send(struct pmi_conn *c);

/* node_barrier.c: the job's barriers over the tree */
int node_barriers_setup(struct node_job *j);
int node_barrier_enter(struct task *t, const struct barrier_id *id);
void node_barrier_from_child(struct node *n, uint32_t place, struct span body);
void node_release_from_parent(struct node *n, struct span body);
uint64_t node_world_round(const struct node_job *j);
/* A message about one round. NULL: out of memory. */
struct msg_out *node_barrier_map(const struct node_job *j, const struct barrier_id *id, uint64_t round);

/* node_stuck.c: those that can never be complete */
/* Is the task a member that has not entered this round? */
bool node_barrier_misses(const struct task *t, const struct barrier_id *id, uint64_t round);
/* Somebody has entered one. */
void node_stuck_arm(struct node_job *j);
bool node_task_is_gone(const struct task *t); /* it enters nothing more */
/* The task has ended; it has closed its PMI connection and can have no other. */
void node_task_gone(struct task *t);
void node_task_left(struct task *t);
void node_rank_gone(struct node_job *j, const struct msg_in *m);
int node_check(struct node_job *j, const struct msg_in *m, struct err *err);
int node_waits_from_child(struct node_job *j, struct span body, const struct msg_in *m, struct err *err);
void node_left_from_child(struct node_job *j, struct span body);
/* MSG_BROKEN: one barrier, or all. */
int node_barriers_broken(struct node_job *j, const struct msg_in *m, struct err *err);

/* node_report.c: who waits in which barrier */
void node_report(struct node_job *j);
/* From now on: say which barrier lasts longer than --barrier-warn. */
void node_slow_watch(struct node_job *j);

/* node_stdio.c */
int task_stdio_open(struct task *t, int out_fd, int err_fd, int in_fd);
void task_stdio_close(struct task *t);
int node_output_credit(struct node_job *j, const struct msg_in *m, struct err *err);
int node_input(struct node_job *j, const struct msg_in *m, struct err *err);
void node_streams_resume(struct node *n);
/* Of a job that is over: close each stream at its end, or all after half a second of silence. */
void node_streams_drain(struct node *n);
bool node_streams_open(const struct node_job *j);

#endif
