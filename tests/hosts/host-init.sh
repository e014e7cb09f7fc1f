#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# host-init.sh NAME STATE SHOW - (run by up.sh inside new namespaces) furnish one host, then become its sshd
set -eu
name=$1 state=$2
IFS=: read -ra show <<<"$3"

hostname "$name"
# What lies under the folders that are about to be covered, and shall stay visible, is held by descriptors.
held=() holders=()
for dir in "${show[@]}"; do
    case $dir/ in
    /tmp/?* | /root/?*)
        exec {fd}<"$dir"
        held+=("$dir") holders+=("$fd")
        ;;
    esac
done
mount --bind "$state/home" /root
mount -t tmpfs -o mode=1777,size=256m tmpfs /tmp
mount -t tmpfs -o mode=1777,size=256m tmpfs /dev/shm
for i in "${!held[@]}"; do
    mkdir -p "${held[i]}"
    mount --no-canonicalize --bind "/proc/self/fd/${holders[i]}" "${held[i]}"
    fd=${holders[i]}
    exec {fd}<&-
done
mount --bind "$state/hosts" /etc/hosts
mount --bind "$state/nsswitch.conf" /etc/nsswitch.conf
mount --bind "$state/shadow" /etc/shadow
mount --bind "$state/ssh/ssh_config" /etc/ssh/ssh_config
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    /usr/sbin/sshd -D -e -f "$state/ssh/sshd_config"
