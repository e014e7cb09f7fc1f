/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/barrier_msg.h"

#include <stdio.h>
#include "server/pmix_sig.h"

void barrier_put(struct msg_out *m, const struct barrier_id *id, uint64_t round)
{
    msg_put_u64(m, "set", id->set);
    msg_put_bin(m, "group", id->group);
    msg_put_i64(m, "tag", id->tag);
    msg_put_u64(m, "round", round);
}

int barrier_read(const struct msg_in *m, struct barrier_id *id, uint64_t *round, struct err *err)
{
    uint64_t set;
    int rc;

    if ((rc = msg_get_u64(m, "set", 0, UINT32_MAX, &set, err)) < 0 ||
        (rc = msg_get_bin(m, "group", &id->group, err)) < 0 || (rc = msg_get_i64(m, "tag", &id->tag, err)) < 0)
        return rc;
    id->set = (uint32_t)set;
    return msg_get_u64(m, "round", 0, UINT64_MAX - 2, round, err);
}

void barrier_text(const struct barrier_id *id, uint64_t round, char *out, size_t size)
{
    char group[120] = "", tag[32] = "", set[32] = "";

    if (id->set == BARRIER_SET_PMIX) {
        pmix_sig_text(id->group, out, size);
        return;
    }
    if (span_is(id->group, "NODE"))
        snprintf(group, sizeof(group), " of its node");
    else if (!span_is(id->group, "WORLD"))
        snprintf(group, sizeof(group), " of ranks %.*s", SPAN_FMT(id->group));
    if (id->tag != 0)
        snprintf(tag, sizeof(tag), " with tag %lld", (long long)id->tag);
    if (id->set != 0)
        snprintf(set, sizeof(set), " in session %u", id->set);
    snprintf(out, size, "barrier %llu%s%s%s", (unsigned long long)round + 1, group, tag, set);
}
