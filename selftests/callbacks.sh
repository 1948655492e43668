#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server calls its client: delegations are recalled when somebody on the
# server itself wants their files. Locally, that somebody waits in open() until
# the client has given the delegation back, or has been told three times a lease
# to do so and is not asked any more.
#
# vm: --memory 3G

# nfsd waits for a tenth of this for an answer to its Call; in an emulated machine
# whose writers have the server read from the client, a second is not enough.
BED_LEASE=90

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# Milliseconds that a recall may take, and those that a lease takes.
SOON=3000
LEASE=$((BED_LEASE * 1000))

# What a recall may take beside writers: giving a delegation back waits its turn
# behind what they write, which takes long on an emulated machine. It is far from
# what a lease takes.
PATIENCE=30000

# By how much more the long variant does: 1,000 recalls, 20 reconnects.
TIMES=${LONG:+10}
TIMES=${TIMES:-1}

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

count_calls() { trace_on xprtrdma_cb_call xprtrdma_cb_reply; }
calls_seen() { traced xprtrdma_cb_call; }
replies_seen() { traced xprtrdma_cb_reply; }

# How many milliseconds the client took for the Reply that took longest.
slowest_reply() {
	awk '
		match($0, /xid=0x[0-9a-f]+/) { xid = substr($0, RSTART, RLENGTH) }
		match($0, /[0-9]+\.[0-9]+: xprtrdma_cb_/) { now = substr($0, RSTART) + 0 }
		/ xprtrdma_cb_call: / { called[xid] = now }
		/ xprtrdma_cb_reply: / {
			took = (now - called[xid]) * 1000
			if (xid in called && took > most) most = took
		}
		END { printf "%d\n", most }' "$TRACING/trace"
}

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

# recall_some FIRST COUNT LIMIT: somebody writes to each of these files.
recall_some() {
	local i took slowest=0

	for ((i = $1; i < $1 + $2; i++)); do
		took=$(timed write_here "$i")
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	echo "slowest recall: $slowest ms"
	[ "$slowest" -lt "$3" ] || fail "one recall took $slowest ms"
}

# Has the client open so many files: a delegation that nobody uses is given back
# after a while.
hold_files() {
	local i fd

	ulimit -n $((100 + $1))
	held=()
	for ((i = 0; i < $1; i++)); do
		exec {fd}<"$WORK/$i"
		held+=("$fd")
	done
	enough_delegations $(($1 * 3 / 4))
}

release_files() {
	local fd

	for fd in "${held[@]}"; do
		exec {fd}<&-
	done
}

# enough_delegations LEAST: nfsd gives none for files that it has recalled not long
# ago, nor for others that look like them to its Bloom filter: the more recalls in
# the last half minute, the more of these.
enough_delegations() {
	local held

	held=$(delegations)
	echo "$held delegations"
	[ "$held" -ge "$1" ] || fail "too few delegations"
}

# start_recalls COUNT LIMIT: four at a time.
start_recalls() {
	local count=$1 i

	recalls=()
	for ((i = 0; i < 4; i++)); do
		recall_some $((i * count / 4)) $((count / 4)) "$2" &
		recalls+=($!)
	done
}

end_recalls() {
	local each

	for each in "${recalls[@]}"; do
		wait "$each" || fail "a recall failed"
	done
}

files_are_changed() {
	local i

	for ((i = 0; i < $1; i++)); do
		grep -q "changed on the server" "$WORK/$i" ||
			fail "the client has not noticed the change of $i"
	done
}

recalls_beside_writers() {
	local count=$((100 * TIMES))

	with_files "$1" "$count"
	hold_files "$count"
	load_start 16 4
	count_calls
	start_recalls "$count" "$PATIENCE"
	end_recalls
	trace_off
	echo "$(calls_seen) reverse Calls, $(replies_seen) Replies," \
		"slowest Reply $(slowest_reply) ms"
	[ "$(calls_seen)" -ge $((count * 9 / 10)) ] || fail "too few reverse Calls"
	load_stop
	release_files
	files_are_changed "$count"
}

# With few credits forward they are used up nearly all the time.
recalls_without_forward_credits() {
	local count=40 file=/proc/sys/sunrpc/svc_rdma/max_requests before

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	with_files "$1" "$count"
	echo "$before" >"$file"
	hold_files "$count"
	load_start 16 4
	start_recalls "$count" "$PATIENCE"
	end_recalls
	load_stop
	release_files
	files_are_changed "$count"
}

# disturbed_recalls VERSION COUNT ROUNDS DISTURBANCE
disturbed_recalls() {
	local count=$2 round

	with_files "$1" "$count"
	hold_files "$count"
	load_start
	start_recalls "$count" 60000
	for ((round = 0; round < $3; round++)); do
		sleep 2
		"$4" || fail "round $round: $4"
		load_progresses
	done
	end_recalls
	load_stop
	release_files
	echo "connected $(xprt_stat connect_count) times"
	[ "$(xprt_stat connect_count)" -gt 1 ] || fail "nothing was disturbed"
}

recalls_through_reconnects() {
	disturbed_recalls "$1" $((40 * TIMES)) $((2 * TIMES)) reconnect
	files_are_changed $((40 * TIMES))
}

restart() {
	server_stop
	sleep 1
	server_start
}

# A server that has just started knows of no delegations, and whoever changes files
# there need not wait for any: what the client sees of that is up to NFS.
recalls_through_restart() { disturbed_recalls "$1" 40 1 restart; }

# What SUNRPC shows of transports, those that call clients among them.
transports_can_be_looked_at() {
	local each count=0

	with_files "$1" 1
	for each in /sys/kernel/sunrpc/xprt-switches/*/xprt-*/*; do
		case $each in
		*/del_xprt) continue ;;
		esac
		cat "$each" >/dev/null || fail "cannot read $each"
		count=$((count + 1))
	done
	[ "$count" -gt 0 ] || fail "there is no transport that calls"
}

# The client leaves while the server calls it. Not altogether: a thread of Linux's
# callback service that is left with the last reference to its nfs_client waits
# for its own end, for good, whatever the transport (nfs4_callback_compound,
# nfs_callback_down). A mount beside keeps another.
unmount_amid_recalls() {
	local version=$1 round

	nfs_mount_at "$MNT-beside" "$version" rdma nosharecache
	for round in 1 2 3; do
		with_files "$version" 40
		cat "$WORK"/{0..39} >/dev/null
		enough_delegations 20
		start_recalls 40 "$LEASE"
		sleep "0.$((RANDOM % 4))"
		cd / && nfs_umount
		end_recalls
	done
}

shorten_grace
bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
# With LOADED=1 only what takes long is tried. Recalls through reconnects may wait for
# good, whatever the transport: nfsd forgets a recall that it starts while its callback
# channel is down, and neither repeats it nor revokes the delegation.
if [ -n "${LOADED:-}" ]; then
	ktap_run "recalls_beside_writers 4.1" "recalls_beside_writers 4.2" \
		"recalls_without_forward_credits 4.2" \
		"recalls_through_reconnects 4.2" "recalls_through_restart 4.2"
fi
ktap_run \
	"channel_is_up 4.1" "channel_is_up 4.2" \
	"read_delegation_is_recalled 4.1" "read_delegation_is_recalled 4.2" \
	"write_delegation_is_recalled 4.2" \
	"transports_can_be_looked_at 4.2" \
	"unmount_amid_recalls 4.2"
