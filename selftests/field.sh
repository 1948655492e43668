#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What administrators do to a mount, and what they look at: connections added and removed by hand,
# the tools that read statistics, link-local addresses, and a server whose address moves to another
# hardware address.
#
# LONG=1 repeats the rounds and lets the server stay away for longer.

cd "$(dirname "$0")" && . ./lib.sh && . lib/delegations.sh || exit 1

# rxe reports connections that exceeded their retries (12), SUNRPC reports servers that do not
# respond.
LOG_EXPECTED='rxe_[cs]: qp#[0-9]+ make_send_cqe: non-flush error status = 12
(rpc_check_timeout|call_decode): [0-9]+ callbacks suppressed
'

ROUNDS=${LONG:+50}
ROUNDS=${ROUNDS:-2}

# Prints the sysfs directories of the client's connections.
connections() {
	with_client_sysfs sh -c \
		'ls -d /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma 2>/dev/null' || :
}

# sysfs_try FILE WORD: writes to a file of a connection, if it still exists. Fails if the write took
# three seconds. Such a write may have had its effect.
sysfs_try() {
	with_client_sysfs timeout --foreground -s KILL 3 sh -c "[ ! -e $1 ] || echo $2 >$1"
}

# sysfs_write FILE WORD: repeats that, since a write may wait for the transport lock without being
# woken, as in reconnect().
sysfs_write() {
	local _

	for _ in {1..30}; do
		! sysfs_try "$1" "$2" || return 0
	done
	fail "cannot write $2 to $1"
}

# Adds eight connections to those of the mount. Sets added to their directories. SUNRPC sends over
# all connections of a mount if it had more than one to begin with.
connections_add() {
	local first switch _

	first=$(connections)
	switch=$(dirname "$(head -n 1 <<<"$first")")
	for _ in {1..60}; do
		mapfile -t added < <(connections | grep -vxF "$first")
		[ ${#added[@]} -lt 8 ] || break
		sysfs_try "$switch/add_xprt" 1 || :
	done
	[ ${#added[@]} -eq 8 ] || fail "${#added[@]} connections were added"
}

# Takes each added connection off line, and some on line again, and removes it in one of two ways.
connections_remove() {
	local i

	for i in "${!added[@]}"; do
		if [ $((i % 2)) -eq 0 ]; then
			sysfs_write "${added[i]}/xprt_state" offline
			[ $((i % 4)) -eq 0 ] || {
				sysfs_write "${added[i]}/xprt_state" online
				sysfs_write "${added[i]}/xprt_state" offline
			}
			sysfs_write "${added[i]}/xprt_state" remove
		else
			sysfs_write "${added[i]}/del_xprt" 1
		fi
	done
}

# Prints how many connections of the mount have carried RPCs.
connections_used() { xprt_lines | awk -v c="$STAT_recvs" '$c > 0' | wc -l; }

all_are_used() { [ "$(connections_used)" -ge 10 ]; }
two_are_left() { [ "$(xprt_lines | wc -l)" -eq 2 ]; }

# During Calls, the added connections carry some of them, and their removal loses none. Recalls
# reach an NFSv4 client afterwards. SUNRPC may keep a connection that is removed while tasks are
# queued on it until the unmount. Then no reference to the module is left.
connections_added_and_removed() {
	local version=$1 round users

	need_link
	users=$(module_users)
	if [ "$version" = 3 ]; then
		nfs_mount "$version" rdma nconnect=2
		work_dir "added-$version"
	else
		with_files "$version" 1 nconnect=2
	fi
	load_start
	for round in $(seq "$ROUNDS"); do
		connections_add
		wait_for "some connections carry no RPCs" all_are_used
		connections_remove
		wait_for "connections are left" two_are_left
		load_wait_progress
		ktap_progress "$round" "$ROUNDS"
	done
	load_stop
	if [ "$version" != 3 ]; then
		cat "$WORK/0" >/dev/null
		[ "$(delegations /0)" -eq 1 ] || fail "no delegation to recall"
		echo "recalled in $(timed write_on_server 0) ms"
		[ "$(delegations /0)" -eq 0 ] || fail "the delegation was not recalled"
		files_are_changed
	fi
	rm -r "$WORK"
	umount_all
	module_is_released "$users"
}

# SUNRPC keeps a connection that is removed without being connected, until the unmount.
# connections_change_while AWAY BACK: AWAY ends all connections, and BACK lets them connect.
connections_change_while() {
	local users

	need_link
	users=$(module_users)
	nfs_mount 3 rdma nconnect=2
	work_dir "$1"
	load_start
	connections_add
	wait_for "some connections carry no RPCs" all_are_used
	"$1"
	connections_remove
	sleep 5
	"$2"
	load_wait_progress
	load_stop
	rm -r "$WORK"
	umount_all
	module_is_released "$users"
}

client_device_delete() { device_delete "$BED_CLIENT_DEV"; }
client_device_add() { device_add "$BED_CLIENT_DEV"; }

# shown COMMAND...: runs a command that prints statistics. It must succeed without complaints, and
# no number may be negative.
shown() {
	"$@" >"$ktap_dir/shown" 2>&1 || { cat "$ktap_dir/shown"; fail "$* failed"; }
	[ -s "$ktap_dir/shown" ] || fail "$* prints nothing"
	! grep -E '(^|[^[:alnum:]_.-])-[0-9]' "$ktap_dir/shown" || fail "$* prints a negative number"
	! grep -E 'Traceback|\bERROR: |not a socket|\bnan\b' "$ktap_dir/shown" ||
		xfail_on_c "$* does not understand the statistics"
}

# The tools of nfs-utils on a mount with four connections, one of which has been replaced.
statistics_tools() {
	local each

	need_link
	nfs_mount 4.2 rdma nconnect=4
	work_dir statistics
	load_start 2
	load_wait_progress
	load_stop
	shown mountstats mountstats "$MNT"
	shown mountstats nfsstat "$MNT"
	shown mountstats iostat 1 2 "$MNT"
	shown mountstats --raw "$MNT"
	grep -q 'xprt:.*rdma' "$ktap_dir/shown" || fail "no transport: $(cat "$ktap_dir/shown")"
	shown nfsiostat 1 2 "$MNT"
	grep -q "mounted on $MNT" "$ktap_dir/shown" || fail "nfsiostat does not show the mount"
	shown nfsstat -m
	grep -q 'proto=rdma' "$ktap_dir/shown" || fail "nfsstat -m does not show the mount"
	shown nfsstat -c
	shown nfsstat -s
	for each in client switch xprt; do
		shown with_client_sysfs rpcctl "$each" show
	done
	[ "$(grep -cE '^xprt.* rdma, ' "$ktap_dir/shown")" -eq 4 ] ||
		fail "rpcctl does not show four connections: $(cat "$ktap_dir/shown")"
	[ "$(grep -c "Source: 192.0.2.2, port [1-9]" "$ktap_dir/shown")" -eq 4 ] ||
		xfail_on_c "rpcctl does not show the source of each connection"
	rm -r "$WORK"
}

# A link-local address has a scope: the client's interface.
link_local_address() {
	local address each connects

	need_link
	address=$(ip -6 -o address show dev "$BED_SERVER_IF" scope link |
		sed -n 's|.* inet6 \([^ /]*\)/.*|\1|p')
	[ -n "$address" ] || skip "the server's interface has no link-local address"
	SERVER6=$address%$BED_CLIENT_IF
	nfs_mount 4.2 rdma6 nconnect=4
	work_dir link-local
	load_start
	[ "$(xprt_lines | wc -l)" -eq 4 ] || fail "not four connections"
	connects=$(xprt_stat connect_count)
	for each in $(connections); do
		sysfs_write "$each/dstaddr" "$SERVER6"
	done
	load_wait_progress
	wait_connect "$connects"
	load_stop
	rm -r "$WORK"
}

SWAP_CGROUP=/sys/fs/cgroup/rpcrdma-swap

# fill_and_check END: fills 40 MiB, reads them back until the file END exists, and fails if a page has
# other bytes.
fill_and_check() {
	python3 -c '
import hashlib, os, sys
def page(number):
    return hashlib.sha256(b"%d" % number).digest() * 128
count = 40 << 8
memory = bytearray(count << 12)
for number in range(count):
    memory[number << 12:number + 1 << 12] = page(number)
while True:
    ends = os.path.exists(sys.argv[1])
    for number in range(count):
        if memory[number << 12:number + 1 << 12] != page(number):
            sys.exit("page %d differs" % number)
    if ends:
        break' "$1"
}

# pages_swapped: prints how many pages were written to swap space.
pages_swapped() { awk '$1 == "pswpout" { print $2 }' /proc/vmstat; }

has_swapped() { [ "$(pages_swapped)" -ge "$1" ]; }

# A swap file on a mount, for a group of processes that uses more memory than it may have. The
# connection is lost meanwhile. The server, which is on the same machine, has memory enough.
swap_file() {
	local before filling round swapped end=$ktap_dir/swapped

	need_local_bed
	[ -z "$(tail -n +2 /proc/swaps)" ] || skip "this machine swaps already"
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control || skip "no limits of memory"
	nfs_mount "$1" rdma
	(umask 077 && dd if=/dev/zero of="$MNT/swap" bs=1M count=64 status=none)
	mkswap "$MNT/swap" >/dev/null
	swapon "$MNT/swap" || fail "no swap"
	mkdir -p "$SWAP_CGROUP"
	echo 24M >"$SWAP_CGROUP/memory.max"
	rm -f "$end"
	before=$(pages_swapped)
	(
		echo "$BASHPID" >"$SWAP_CGROUP/cgroup.procs"
		fill_and_check "$end"
	) &
	filling=$!
	for round in 1 2 3; do
		wait_for "too few pages are swapped" has_swapped $((before + round * 1000))
		reconnect
	done
	touch "$end"
	wait "$filling" || fail "memory has other data, or was not there"
	swapped=$(($(pages_swapped) - before))
	echo "$swapped pages were written"
	[ "$swapped" -ge 4000 ] || fail "only $swapped pages were swapped"
	swapoff "$MNT/swap"
	rm "$MNT/swap"
}

test_cleanup() {
	cd /
	echo 1 >"$SWAP_CGROUP/cgroup.kill"
	swapoff "$MNT/swap"
	rmdir "$SWAP_CGROUP"
	trace_off
	! bed_has_link || {
		link_up
		[ -e "/sys/class/infiniband/$BED_CLIENT_DEV" ] || device_add "$BED_CLIENT_DEV"
	}
	server_up || server_start
	umount_all
} 2>/dev/null

bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * (2 + ROUNDS / 5)))
[ $# -gt 0 ] || set -- "connections_change_while server_stop server_start" \
	"connections_change_while client_device_delete client_device_add" \
	statistics_tools link_local_address "swap_file 3" "swap_file 4.2" \
	${LONG:+"connections_added_and_removed 3"}
ktap_run "$@"
