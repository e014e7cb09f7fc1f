/* SPDX-License-Identifier: BSD-3-Clause */
/* root_parts.h - the functions of root*.c for each other; see root_priv.h, which includes it */
#ifndef SERVER_ROOT_PARTS_H
#define SERVER_ROOT_PARTS_H

/* root.c */
void root_send_map(struct root *r, unsigned type, struct msg_out *m, bool data);
/* A failure: opens the window, or ends the run at once for an abort; with --keep-going it only counts. */
void root_blame(struct root *r, enum blame_kind kind, int status, const char *text);
/* The status is decided by something that is no failure of the job. The text may be NULL. */
void root_decide(struct root *r, int status, const char *text);
/* End what runs: with `sig` first, KILL after the grace. */
void root_end(struct root *r, int sig);
void root_check_over(struct root *r);
/* Every task of every job has ended, or none was started: let the nodes finish. */
void root_drain(struct root *r);

/* root_job.c */
/* Owns `job`, also on failure. NULL: out of memory. */
struct root_job *root_job_new(struct root *r, struct job *job);
void root_jobs_free(struct root *r);
/* The job that a message is about, by its number; NULL: none such. */
struct root_job *root_job_of(const struct root *r, const struct msg_in *m);
struct root_job *root_job_numbered(const struct root *r, uint64_t id);
/* A message about the job. NULL: out of memory. */
struct msg_out *root_job_map(const struct root_job *j);
const char *root_host(const struct root_job *j, uint32_t rank);
/* "rank 5 on hostb (pid 1234)", "rank 5 of job 2 on hostb"; `pid` 0: without. */
void root_who(const struct root_job *j, uint32_t rank, uint32_t pid, char *out, size_t size);
/* "5", or "2.5" for a rank of job 2. */
void root_rank_name(const struct root_job *j, uint32_t rank, char *out, size_t size);
/* The job and rank of the `task`-th task of the run. */
const struct root_job *root_job_at(const struct root *r, uint32_t task, uint32_t *rank);
void root_mark_ended(struct root_job *j, uint32_t rank);
/* All that has not ended is taken for ended: nothing of it runs. */
void root_job_over(struct root_job *j);

/* root_start.c */
void root_ready(struct root *r, struct root_job *j, const struct msg_in *m);
/* The rank with the terminal has ended: put that back when all it has written is out, or soon. */
void root_last_words(struct root *r);
void root_terminal_look(struct root *r, uint32_t task); /* is it? Something of the task's came, or was written */

/* root_serve.c */
int root_serve_begin(struct root *r, struct err *err);
void root_came(struct root_job *j, const struct msg_in *m);
/* As root_who(), of COMMAND or of a rank that comes from elsewhere. */
void root_serve_who(const struct root_job *j, uint32_t rank, uint32_t pid, char *out, size_t size);
uint32_t root_serve_missing(const struct root_job *j, struct buf *out); /* "ranks 3-5 have not come"; how many */

/* root_spawn.c */
int root_spawn(struct root *r, const struct msg_in *m, struct err *err);
/* The nodes have looked at a spawned job: let it go, or say what is wrong with it. */
void root_spawn_ready(struct root_job *j);
int root_spawn_refused(struct root_job *j, const struct msg_in *m, struct err *err);
/* Tell the asker, once, what became of it. */
void root_spawn_answer(struct root_job *j);
int root_spawn_started(struct root_job *j, const struct msg_in *m, struct err *err);
/* The host of a rank of a spawned job is lost: where it has not come to its exec, it never will. */
void root_spawn_lost(struct root_job *j, uint32_t rank);
int root_name(struct root *r, const struct msg_in *m, struct err *err);

/* root_events.c */
int root_exited(struct root_job *j, const struct msg_in *m, struct err *err);
int root_failed(struct root_job *j, const struct msg_in *m, struct err *err);
int root_place_leaves(struct root *r, const struct msg_in *m, struct err *err);
int root_place_lost(struct root *r, const struct msg_in *m, struct err *err);
int root_start_refused(struct root_job *j, const struct msg_in *m, struct err *err);
void root_left(struct root_job *j);
int root_waits(struct root_job *j, const struct msg_in *m, struct err *err);
int root_stuck(struct root_job *j, const struct msg_in *m, struct err *err);
/* --keep-going: every barrier of it answers rc=-1 from now on. */
void root_break_barriers(struct root_job *j);
void root_log(struct root *r, const struct msg_in *m);
/* The ranks at or below a lost place have ended with it. */
void root_lose_ranks(struct root_job *j, uint32_t place);
/* All hosts lost so far as lines, the same reasons folded. */
void root_say_lost(struct root *r);

/* A rank's failure. That it has not finalized, or is missing in a barrier, follows from one that has been told. */
void root_blame_rank(struct root_job *j, uint32_t rank, enum blame_kind kind, int status, const char *text);

/* root_pmix.c */
struct pmix_store *root_pmix_store(struct root *r);
int root_pmix_ask(struct root *r, const struct msg_in *m, struct err *err);
int root_pmix_got(struct root *r, const struct msg_in *m, struct err *err);
int root_pmix_event(struct root *r, const struct msg_in *m, struct err *err);
void root_pmix_came(struct root_job *j);
/* Exits: has one of them never begun PMIx? */
void root_pmix_exited(struct root_job *j, const struct msg_in *m);
/* The run is over: a job that had PMIx and did not use it may have been several. */
void root_pmix_singletons(const struct root *r);
/* Of a message of ready: true where two nodes have different libraries, and `line` says so. */
bool root_pmix_versions(const struct root *r, const struct msg_in *m, char *line, size_t size);

/* root_fault.c: a message that others wait for was refused by a node; by the launcher; could not be sent by it */
void root_fault(struct root *r, const struct msg_in *m);
void root_refuse(struct root *r, unsigned type, const struct err *why);
void root_unsent(struct root *r, unsigned type, int rc);

/* root_report.c: who is awaited */
void root_ask(struct root *r, enum ask_why why, int sig);
void root_reported(struct root_job *j, const struct msg_in *m);
void root_slow(struct root_job *j, const struct msg_in *m);
/* Do not wait for more answers. */
void root_report_now(struct root *r);
void root_report_free(struct root *r);
/* The time limit is over. */
void root_limit(struct root *r);
/* QUIT: say all that is known of the run. */
void root_state(struct root *r);

/* root_trace.c */
int root_trace_open(struct root *r, struct err *err);
void root_trace(struct root_job *j, const struct msg_in *m);

/* root_say.c */
void root_say_time(struct root *r); /* the time limit decides, and it is said at what it was met */
/* A signal has ended the run before all were in: who was awaited. */
void root_say_start_ended(const struct root *r, int sig);
/* Killed, and nothing is heard of them: which tasks are not waited for any longer. */
void root_say_given_up(const struct root *r);

#endif
