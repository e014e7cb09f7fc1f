/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/addrs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/io/resolve.h"
#include "common/io/sockname.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"

#define RESOLVE_MS 2000
#define ADDRS_PER_HOST 4 /* of one name, asked for their route */

/* As sockname_bytes() has it. */
struct ip {
    uint8_t b[16];
};

struct local {
    struct ip ip;
    char text[INET6_ADDRSTRLEN];
    char ifname[IF_NAMESIZE];
    bool running;   /* there is a carrier */
    unsigned votes; /* hosts to which the route has this source */
};

struct locals {
    struct local *v;
    size_t count;
};

static bool ip_is_v4(const struct ip *ip)
{
    struct in6_addr six;

    memcpy(&six, ip->b, sizeof(six));
    return IN6_IS_ADDR_V4MAPPED(&six);
}

static bool ip_of_text(struct span s, struct ip *out)
{
    union sockname a;

    return sockname_set(&a, s, 0) > 0 && sockname_bytes(&a.sa, out->b);
}

static bool ip_is_loopback(const struct ip *ip)
{
    static const struct ip v6 = {{[15] = 1}};

    return ip_is_v4(ip) ? ip->b[12] == 127 : memcmp(ip, &v6, sizeof(v6)) == 0;
}

static bool ip_is_link_local(const struct ip *ip)
{
    return ip_is_v4(ip) ? ip->b[12] == 169 && ip->b[13] == 254 : ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

static bool ip_is_global(const struct ip *ip)
{
    static const struct ip any4 = {{[10] = 0xff, [11] = 0xff}}, any6;

    return !ip_is_loopback(ip) && !ip_is_link_local(ip) && memcmp(ip, &any4, sizeof(any4)) != 0 &&
           memcmp(ip, &any6, sizeof(any6)) != 0;
}

static bool ip_in(const struct ip *ip, const struct ip *net, unsigned bits)
{
    unsigned rest = bits % 8;

    if (memcmp(ip->b, net->b, bits / 8) != 0)
        return false;
    return rest == 0 || ((ip->b[bits / 8] ^ net->b[bits / 8]) & (0xff00u >> rest) & 0xff) == 0;
}

/* --- this machine's addresses --- */

static int add_local(struct locals *l, const struct ifaddrs *ifa, const struct ip *ip)
{
    struct local *v = realloc(l->v, (l->count + 1) * sizeof(*v)), *one;

    if (v == NULL)
        return -ENOMEM;
    l->v = v;
    one = &v[l->count++];
    *one = (struct local){.ip = *ip, .running = (ifa->ifa_flags & IFF_RUNNING) != 0};
    snprintf(one->ifname, sizeof(one->ifname), "%s", ifa->ifa_name);
    if (ip_is_v4(ip))
        inet_ntop(AF_INET, ip->b + 12, one->text, sizeof(one->text));
    else
        inet_ntop(AF_INET6, ip->b, one->text, sizeof(one->text));
    return 0;
}

/* Every IPv4 and IPv6 address of an interface that is up, loopback and link-local ones too. */
static int locals_get(struct locals *l)
{
    struct ifaddrs *all;
    struct ip ip;
    int rc = 0;

    *l = (struct locals){0};
    if (getifaddrs(&all) < 0)
        return -errno;
    for (struct ifaddrs *ifa = all; ifa != NULL && rc == 0; ifa = ifa->ifa_next)
        if (ifa->ifa_addr != NULL && (ifa->ifa_flags & IFF_UP) != 0 && sockname_bytes(ifa->ifa_addr, ip.b))
            rc = add_local(l, ifa, &ip);
    freeifaddrs(all);
    if (rc < 0)
        free(l->v);
    return rc;
}

static struct local *find_ip(const struct locals *l, const struct ip *ip)
{
    for (size_t i = 0; i < l->count; i++)
        if (memcmp(&l->v[i].ip, ip, sizeof(*ip)) == 0)
            return &l->v[i];
    return NULL;
}

/* --- the choice of the user: NAME, ADDR or CIDR --- */

static bool is_chosen(const struct local *one, const char *interface)
{
    struct span s = span_of(interface);
    const char *slash = strchr(interface, '/');
    struct ip net;
    uint64_t bits;

    if (strcmp(one->ifname, interface) == 0)
        return true;
    if (slash != NULL)
        s.n = (size_t)(slash - interface);
    if (!ip_of_text(s, &net))
        return false;
    if (slash == NULL)
        return memcmp(&net, &one->ip, sizeof(net)) == 0;
    if (num_u64(span_of(slash + 1), 0, ip_is_v4(&net) ? 32 : 128, &bits) < 0)
        return false;
    /* An IPv6 prefix, be it ::/0, is not about IPv4. */
    return ip_is_v4(&net) == ip_is_v4(&one->ip) && ip_in(&one->ip, &net, (unsigned)bits + (ip_is_v4(&net) ? 96 : 0));
}

/* "eth0 (10.0.0.1), lo (127.0.0.1)"; `global`: only what can be given out. */
static int list_locals(const struct locals *l, bool global, struct buf *out)
{
    int rc = 0;

    for (size_t i = 0; i < l->count && rc == 0; i++)
        if (!global || ip_is_global(&l->v[i].ip))
            rc = buf_printf(out, "%s%s (%s)", out->len > 0 ? ", " : "", l->v[i].text, l->v[i].ifname);
    return rc;
}

static int nothing_left(const struct locals *l, const char *interface, struct err *err)
{
    struct buf text = {0};
    bool exists = false, any = false;
    const char *list;
    int rc;

    for (size_t i = 0; i < l->count; i++) {
        exists = exists || (interface != NULL && is_chosen(&l->v[i], interface));
        any = any || ip_is_global(&l->v[i].ip);
    }
    list_locals(l, any, &text);
    list = buf_str(&text);
    if (list == NULL || *list == '\0')
        list = "none";
    if (!any)
        rc = err_set(err, -EINVAL, "this machine has no address that other hosts can reach; it has: %s", list);
    else if (exists)
        rc = err_set(err, -EINVAL, "interface '%s' has no address that other hosts can reach; choices: %s", interface,
                     list);
    else
        rc =
            err_set(err, -EINVAL, "no interface that is up has the name or address '%s'; choices: %s", interface, list);
    buf_done(&text);
    return rc;
}

/* --- which source the routes to the hosts have --- */

/* connect() of a datagram socket only looks up the route: nothing is sent. */
static bool route_source(const struct sockaddr *to, socklen_t len, struct ip *out)
{
    struct sockaddr_storage from = {0};
    socklen_t n = sizeof(from);
    int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok;

    if (fd < 0)
        return false;
    ok = connect(fd, to, len) == 0 && getsockname(fd, (struct sockaddr *)&from, &n) == 0 &&
         sockname_bytes((struct sockaddr *)&from, out->b);
    close(fd);
    return ok;
}

/* One vote a host and source address, whatever the number of addresses that the host has. */
static void vote(size_t i, const struct addrinfo *ai, void *arg)
{
    struct local *seen[ADDRS_PER_HOST], *one;
    struct locals *l = arg;
    unsigned count = 0, asked = 0;
    struct ip ip;

    (void)i;
    for (; ai != NULL && asked < ADDRS_PER_HOST; ai = ai->ai_next, asked++) {
        if (!route_source(ai->ai_addr, ai->ai_addrlen, &ip) || (one = find_ip(l, &ip)) == NULL)
            continue;
        for (unsigned k = 0; k < count && one != NULL; k++)
            if (seen[k] == one)
                one = NULL;
        if (one == NULL)
            continue;
        one->votes++;
        seen[count++] = one;
    }
}

/* The host's name alone: "user@" is for the login. */
static const char *bare_name(const char *name)
{
    const char *at = strrchr(name, '@');

    return at != NULL ? at + 1 : name;
}

/* Ask up to RESOLVE_MAX hosts, spread over the list, so that a second network at its end is seen too. */
static void vote_all(struct locals *l, const struct hostlist *hosts)
{
    size_t count = hosts != NULL ? hostlist_count(hosts) : 0, ask = MIN(count, RESOLVE_MAX), n = 0;
    char *names[RESOLVE_MAX];

    for (size_t i = 0; i < ask; i++) {
        const char *name = bare_name(hostlist_get(hosts, i * count / ask).name);

        if (!addrs_is_self(name) && (names[n] = strdup(name)) != NULL)
            n++;
    }
    resolve_names(names, n, RESOLVE_MS, vote, l);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
}

/* --- the answer --- */

static void keep_usable(struct locals *l, const char *interface)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        if (ip_is_global(&l->v[i].ip) && (interface == NULL || is_chosen(&l->v[i], interface)))
            l->v[n++] = l->v[i];
    l->count = n;
}

static bool is_better(const struct local *a, const struct local *b)
{
    return a->votes != b->votes ? a->votes > b->votes : a->running && !b->running;
}

/* Stable, so that equals stay in the kernel's order; there are few. */
static void sort(struct locals *l)
{
    for (size_t i = 1; i < l->count; i++)
        for (size_t k = i; k > 0 && is_better(&l->v[k], &l->v[k - 1]); k--) {
            struct local swap = l->v[k];

            l->v[k] = l->v[k - 1];
            l->v[k - 1] = swap;
        }
}

static int texts_of(const struct locals *l, char ***out)
{
    char **v = NULL;

    for (size_t i = 0; i < MIN(l->count, ADDRS_MAX); i++) {
        if (strv_add(&v, l->v[i].text) < 0) {
            strv_free(v);
            return -ENOMEM;
        }
    }
    *out = v;
    return 0;
}

int addrs_to_give(const char *interface, const struct hostlist *hosts, char ***out, struct err *err)
{
    struct locals all, l;
    int rc = locals_get(&all);

    if (rc < 0)
        return err_set(err, rc, "cannot list this machine's addresses: %s", strerror(-rc));
    l = (struct locals){malloc(MAX(all.count, 1) * sizeof(*l.v)), all.count};
    if (l.v == NULL) {
        rc = err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    if (all.count > 0)
        memcpy(l.v, all.v, all.count * sizeof(*l.v));
    keep_usable(&l, interface);
    if (l.count == 0) {
        rc = nothing_left(&all, interface, err);
        goto out;
    }
    if (l.count > 1)
        vote_all(&l, hosts);
    sort(&l);
    rc = texts_of(&l, out);
    if (rc < 0)
        err_set(err, rc, "out of memory");
out:
    free(l.v);
    free(all.v);
    return rc;
}

bool addrs_is_local(const char *number)
{
    struct locals l;
    struct ip ip;
    bool yes;

    if (!ip_of_text(span_of(number), &ip))
        return false;
    if (ip_is_loopback(&ip))
        return true;
    if (locals_get(&l) < 0)
        return false;
    yes = find_ip(&l, &ip) != NULL;
    free(l.v);
    return yes;
}

const char *addrs_interface_of(const char *addr)
{
    static char name[IF_NAMESIZE];
    struct local *one = NULL;
    struct locals l;
    struct ip ip;

    snprintf(name, sizeof(name), "?");
    if (!ip_of_text(span_of(addr), &ip) || locals_get(&l) < 0)
        return name;
    one = find_ip(&l, &ip);
    if (one != NULL)
        memcpy(name, one->ifname, sizeof(name));
    free(l.v);
    return name;
}

bool addrs_all_loopback(char *const *addrs)
{
    for (size_t i = 0; addrs[i] != NULL; i++)
        if (strncmp(addrs[i], "127.", 4) != 0 && strncmp(addrs[i], "::1:", 4) != 0)
            return false;
    return true;
}
