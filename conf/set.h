/* SPDX-License-Identifier: BSD-3-Clause */
/* set.h - setters of the option table: a text, checked, becomes a field of struct conf. Inside conf/ only. */
#ifndef CONF_SET_H
#define CONF_SET_H

#include "conf/option.h"

/* Generic: the field at o->at. */
int set_flag(struct loader *ld, const struct option *o, struct span text, struct err *err);     /* bool */
int set_choice(struct loader *ld, const struct option *o, struct span text, struct err *err);   /* an enum */
int set_unsigned(struct loader *ld, const struct option *o, struct span text, struct err *err); /* unset: 0 */
int set_int(struct loader *ld, const struct option *o, struct span text, struct err *err);      /* unset: -1 */
int set_ms(struct loader *ld, const struct option *o, struct span text, struct err *err);       /* uint64_t */
int set_text(struct loader *ld, const struct option *o, struct span text, struct err *err);     /* char *, not empty */
int set_pattern(struct loader *ld, const struct option *o, struct span text, struct err *err); /* char *, a file name */
int set_word(struct loader *ld, const struct option *o, struct span text, struct err *err);    /* char *, shell-safe */

/* One option each. */
int set_ntasks(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_input(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_port(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_env(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_env_none(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_preput(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_rsh_tree(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_trace(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_verbose(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_quiet(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_print_hosts(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_join(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_serve(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_new_secret(struct loader *ld, const struct option *o, struct span text, struct err *err);
/* o->min is the enum conf_action. */
int set_action(struct loader *ld, const struct option *o, struct span text, struct err *err);
int set_word_of_command(struct loader *ld, const struct option *o, struct span text, struct err *err);
/* Not empty; used from the noted values when all of them are known. */
int set_nothing(struct loader *ld, const struct option *o, struct span text, struct err *err);

/* Put a copy of `text` (p NULL: NULL) in the place of an owned string. 0 or -ENOMEM, nothing changed. */
int text_replace(char **field, struct span text);
/* "PORT" or "LOW-HIGH"; -EINVAL. */
int ports_parse(struct span text, struct conf_ports *out);
/* Is every byte one that no shell takes for its own (letters, digits, /._:,=-+@%), and the first no '-'? */
bool word_is_safe(struct span text);

#endif
