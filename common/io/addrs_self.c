/* SPDX-License-Identifier: BSD-3-Clause */
/* addrs_self.c - is a name in a host list this machine? Answered without a query to anybody
 *
 * A full name is taken for this machine's when its first label is our host name and the domain is one that the system
 * itself adds to short names (resolv.conf), or when /etc/hosts gives both names on one line. A short name is ours
 * when the host name begins with it. That another machine has the same short name in a domain of its own is not ruled
 * out, so the first label alone is not enough.
 */
#include <ctype.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "common/io/addrs.h"
#include "common/limits.h"

static size_t label_len(const char *name)
{
    return strcspn(name, ".");
}

/* Does one line of /etc/hosts hold both names? */
static bool line_has_both(char *line, const char *a, const char *b)
{
    bool has_a = false, has_b = false;
    char *rest;

    line[strcspn(line, "#\n")] = '\0';
    strtok_r(line, " \t", &rest); /* the address */
    for (char *word; (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
        has_a = has_a || strcasecmp(word, a) == 0;
        has_b = has_b || strcasecmp(word, b) == 0;
    }
    return has_a && has_b;
}

static bool hosts_file_has_both(const char *a, const char *b)
{
    FILE *f = fopen("/etc/hosts", "re");
    bool found = false;
    char line[4096];

    if (f == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), f) != NULL)
        found = line_has_both(line, a, b);
    fclose(f);
    return found;
}

static bool is_search_domain(const char *domain)
{
    struct __res_state st = {0};
    bool found = false;

    if (res_ninit(&st) < 0)
        return false;
    for (size_t i = 0; i < MAXDNSRCH && st.dnsrch[i] != NULL && !found; i++)
        found = strcasecmp(st.dnsrch[i], domain) == 0;
    res_nclose(&st);
    return found;
}

static bool is_host_name(const char *name)
{
    char own[HOST_NAME_MAX_LEN + 1] = "";
    size_t n = label_len(name), m;

    if (gethostname(own, sizeof(own) - 1) < 0 || own[0] == '\0')
        return false;
    if (strcasecmp(name, own) == 0)
        return true;
    m = label_len(own);
    if (n != m || strncasecmp(name, own, n) != 0)
        return false;
    if (name[n] == '\0') /* the short form of a full host name */
        return true;
    if (own[m] != '\0') /* both full, and different */
        return false;
    return hosts_file_has_both(name, own) || is_search_domain(name + n + 1);
}

bool addrs_is_self(const char *name)
{
    const char *at = strrchr(name, '@');

    if (at != NULL)
        name = at + 1;
    if (strcasecmp(name, "localhost") == 0 || strcasecmp(name, "localhost.localdomain") == 0)
        return true;
    return addrs_is_local(name) || is_host_name(name);
}
