#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server calls its client: delegations are recalled when somebody on the
# server itself wants their files. Locally, that somebody waits in open() until
# the client has given the delegation back, or has been told three times a lease
# to do so and is not asked any more.
#
# vm: --memory 3G

cd "$(dirname "$0")" && . ./lib.sh || exit 1

TRACING=/sys/kernel/tracing

# Milliseconds that a recall may take, and those that a lease takes.
SOON=3000
LEASE=10000

# nfsd gives no delegation before the locks of NFSv3 have had time to come back.
shorten_grace() {
	modprobe lockd
	echo 3 >/proc/sys/fs/nfs/nlm_timeout
	echo 3 >/proc/sys/fs/nfs/nlm_grace_period
} 2>/dev/null

# A directory with files of the server's own; a file that was in conflict once
# gets no delegation for a while.
with_files() {
	local version=$1 count=$2 i

	need_local_bed
	nfs_mount "$version" rdma
	work_dir "callbacks-$RANDOM"
	for ((i = 0; i < count; i++)); do
		echo "as it was $i" >"$WORK_ON_SERVER/$i"
	done
	wait_for_first_delegation
}

# delegations [NAME]: how many clients hold, or whether one is held of that file.
delegations() {
	cat /proc/fs/nfsd/clients/*/states 2>/dev/null |
		grep 'type: deleg' | grep -c "filename: \".*${1:-}\""
}

wait_for_first_delegation() {
	local i probe

	for ((i = 0; i < 60; i++)); do
		probe=probe-$RANDOM-$i
		echo x >"$WORK_ON_SERVER/$probe"
		cat "$WORK/$probe" >/dev/null
		[ "$(delegations "$probe")" -eq 0 ] || return 0
		sleep 0.5
	done
	fail "the server gives no delegations"
}

milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }

# timed COMMAND...: how many milliseconds it takes.
timed() {
	local begin
	begin=$(milliseconds)
	"$@" >/dev/null || fail "$* failed"
	echo $(($(milliseconds) - begin))
}

write_here() { echo "changed on the server" >>"$WORK_ON_SERVER/$1"; }

# How many reverse Calls our transport has seen since count_calls.
count_calls() {
	mountpoint -q "$TRACING" || mount -t tracefs tracefs "$TRACING"
	echo 0 >"$TRACING/tracing_on"
	echo >"$TRACING/trace"
	echo 1 >"$TRACING/events/rpcrdma/xprtrdma_cb_call/enable"
	echo 1 >"$TRACING/events/rpcrdma/xprtrdma_cb_reply/enable"
	echo 1 >"$TRACING/tracing_on"
}

calls_seen() { grep -c ' xprtrdma_cb_call:' "$TRACING/trace"; }
replies_seen() { grep -c ' xprtrdma_cb_reply:' "$TRACING/trace"; }

operations() {
	awk -v at="$MNT" -v op="$1:" '
		$1 == "device" { here = $5 == at }
		here && $1 == op { print $2; found = 1 }
		END { if (!found) print 0 }' /proc/self/mountstats
}

# A server that cannot call says so in each reply, and the client mends that
# after each: at twice the price.
channel_is_up() {
	local version=$1 i

	need_local_bed
	nfs_mount "$version" rdma
	work_dir "channel-$version"
	for i in {1..50}; do
		echo "$i" >"$WORK/$i"
	done
	grep -q '^callback state: UP' /proc/fs/nfsd/clients/*/info ||
		fail "$(grep -h '^callback state' /proc/fs/nfsd/clients/*/info)"
	[ "$(operations BIND_CONN_TO_SESSION)" -eq 0 ] ||
		fail "the client bound its connection again"
	[ "$(operations CREATE_SESSION)" -le 1 ] ||
		fail "the client made more than one session"
}

read_delegation_is_recalled() {
	local took

	with_files "$1" 1
	cat "$WORK/0" >/dev/null
	[ "$(delegations /0)" -eq 1 ] || fail "no delegation to recall"
	count_calls
	took=$(timed write_here 0)
	echo "recalled in $took ms"
	[ "$took" -lt "$SOON" ] || fail "it took $took ms"
	[ "$(calls_seen)" -ge 1 ] || fail "no reverse Call was seen"
	[ "$(replies_seen)" -ge 1 ] || fail "no reverse Reply was seen"
	grep -q "changed on the server" "$WORK/0" ||
		fail "the client has not noticed the change"
}

# What the client has not written back yet has to be there for who opens next.
write_delegation_is_recalled() {
	local took

	with_files "$1" 1
	exec 8<>"$WORK/0"
	echo "written by the client" >&8
	[ "$(delegations /0)" -eq 1 ] || skip "no delegation for writing"
	took=$(timed grep -q "written by the client" "$WORK_ON_SERVER/0")
	exec 8>&-
	echo "recalled in $took ms"
	[ "$took" -lt "$SOON" ] || fail "it took $took ms"
}

# recall_some FIRST COUNT: somebody writes to each of these files.
recall_some() {
	local i took slowest=0

	for ((i = $1; i < $1 + $2; i++)); do
		took=$(timed write_here "$i")
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	[ "$slowest" -lt "$LEASE" ] || fail "one recall took $slowest ms"
	echo "slowest recall: $slowest ms"
}
# The client leaves while the server calls it. Not altogether: a thread of Linux's
# callback service that is left with the last reference to its nfs_client waits
# for its own end, for good, whatever the transport (nfs4_callback_compound,
# nfs_callback_down). A mount beside keeps another.
unmount_amid_recalls() {
	local version=$1 files=40 round i jobs job

	nfs_mount_at "$MNT-beside" "$version" rdma nosharecache
	for round in 1 2 3; do
		with_files "$version" "$files"
		for ((i = 0; i < files; i++)); do
			cat "$WORK/$i" >/dev/null
		done
		jobs=()
		for ((i = 0; i < 4; i++)); do
			recall_some $((i * files / 4)) $((files / 4)) &
			jobs+=($!)
		done
		sleep "0.$((RANDOM % 4))"
		cd / && nfs_umount
		for job in "${jobs[@]}"; do
			wait "$job" || fail "a recall failed in round $round"
		done
	done
}

shorten_grace
bed_up
ktap_run \
	"channel_is_up 4.1" "channel_is_up 4.2" \
	"read_delegation_is_recalled 4.1" "read_delegation_is_recalled 4.2" \
	"write_delegation_is_recalled 4.2" \
	"unmount_amid_recalls 4.2"
