#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The server calls its client: delegations are recalled when somebody on the
# server itself wants their files. Locally, that somebody waits in open() until
# the client has given the delegation back, or has been told three times a lease
# to do so and is not asked any more.
#
#   callbacks.sh [CASE...]    these cases only, each with its arguments
#
# With LONG=1 the client and the server are idle for minutes as well.
# With LOADED=1 it is recalls beside writers, through reconnects and a restart, which
# takes long; with LONG=1 as well ten times as many of them.
#
# vm: --memory 3G

# nfsd waits for a tenth of this for an answer to its Call; in an emulated machine
# whose writers have the server read from the client, a second is not enough.
BED_LEASE=90

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# The C module sends to a client that is gone, and rxe tells of that.
[ "$(module_kind)" != c ] ||
	LOG_EXPECTED='rxe_s: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

# Milliseconds that a recall may take, which is less than nfsd waits for one whose Call or
# Reply is lost, and those that a lease takes.
SOON=$((8000 * PACE))
LEASE=$((BED_LEASE * 1000))

# What a recall may take beside writers: giving a delegation back waits its turn
# behind what they write, which takes long on an emulated machine. It is far from
# what a lease takes.
PATIENCE=$((PACE > 1 ? 60000 : 30000))

# By how much more the long variant does: 1,000 recalls beside writers, 20 reconnects.
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
	# shellcheck disable=SC2207 # numbers
	files=($(seq 0 $((count - 1))))
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

# Whether the client answers within twenty seconds.
soon_replied() {
	local _

	for _ in {1..100}; do
		[ "$(replies_seen)" -eq 0 ] || return 0
		sleep 0.2
	done
	return 1
}

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
backchannel_is_up() {
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
	# The client may give its delegation back before it says that it will.
	soon_replied || fail "no reverse Reply was seen"
	[ "$(calls_seen)" -ge 1 ] || fail "no reverse Call was seen"
	grep -q "changed on the server" "$WORK/0" ||
		fail "the client has not noticed the change"
}

# Neither end closes the way back for being idle, which connections of SUNRPC are after
# five minutes. What a client does not look at for a while it does not keep delegated.
idle_connection_keeps_backchannel() {
	local took

	with_files "$1" 1
	for _ in {1..34}; do
		cat "$WORK/0" >/dev/null
		sleep 10
	done
	[ "$(delegations /0)" -eq 1 ] || fail "no delegation to recall"
	took=$(timed write_here 0)
	echo "recalled in $took ms"
	[ "$took" -lt "$SOON" ] || fail "it took $took ms"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "the connection was lost"
}

# What the client has not written back yet has to be there for who opens next.
write_delegation_is_recalled() {
	local took

	with_files "$1" 1
	exec 8<>"$WORK/0"
	echo "written by the client" >&8
	[ "$(delegations /0)" -eq 1 ] || fail "no delegation for writing"
	took=$(timed grep -q "written by the client" "$WORK_ON_SERVER/0")
	exec 8>&-
	echo "recalled in $took ms"
	[ "$took" -lt "$SOON" ] || fail "it took $took ms"
}

# recall LIMIT FILE...: somebody writes to each of these files, and gives up after so
# many milliseconds. The names of those that were given up go to $WORK.late.
recall() {
	local limit=$1 file begin took slowest=0
	shift

	export WORK_ON_SERVER
	for file; do
		begin=$(milliseconds)
		# shellcheck disable=SC2016 # expanded there
		if ! timeout $((limit / 1000)) \
			sh -c 'echo "changed on the server" >>"$WORK_ON_SERVER/$1"' sh "$file"; then
			echo "recall of $file given up after $(($(milliseconds) - begin)) ms"
			echo "$file" >>"$ktap_dir/late"
			continue
		fi
		took=$(($(milliseconds) - begin))
		[ "$took" -le "$slowest" ] || slowest=$took
	done
	echo "slowest recall: $slowest ms"
}

# Names of the files that the client holds delegations of.
files_held() {
	sed -n "s|.*type: deleg.*filename: \"\(.*/\)\?${WORK##*/}/\([0-9]*\)\".*|\2|p" \
		/proc/fs/nfsd/clients/*/states | sort -un
}

# hold_files COUNT: has the client open files until it holds so many delegations, and
# keep them open: a delegation that nobody uses is given back after a while. nfsd gives
# none for files that look, to its Bloom filter, like those recalled not long ago.
hold_files() {
	local i=0 fd

	ulimit -n $((100 + 4 * $1))
	held=() files=()
	until [ ${#files[@]} -ge "$1" ]; do
		[ "$i" -lt $((4 * $1)) ] || fail "no more than ${#files[@]} delegations"
		for ((; i < 4 * $1 && ${#held[@]} - ${#files[@]} < $1; i++)); do
			echo "as it was $i" >"$WORK_ON_SERVER/$i"
			exec {fd}<"$WORK/$i"
			held+=("$fd")
		done
		mapfile -t files < <(files_held)
	done
	echo "${#files[@]} delegations, of ${#held[@]} files"
	files=("${files[@]:0:$1}")
}

release_files() {
	local fd

	for fd in "${held[@]}"; do
		exec {fd}<&-
	done
}

# enough_delegations LEAST
enough_delegations() {
	local held

	held=$(delegations)
	echo "$held delegations"
	[ "$held" -ge "$1" ] || fail "too few delegations"
}

# start_recalls LIMIT: of all files, four at a time.
start_recalls() {
	local i each=$(((${#files[@]} + 3) / 4))

	recalls=()
	rm -f "$ktap_dir/late"
	for ((i = 0; i < ${#files[@]}; i += each)); do
		recall "$1" "${files[@]:i:each}" &
		recalls+=($!)
	done
}

# end_recalls [GIVEN-UP]: so many (0) may have been given up.
end_recalls() {
	local each late=0

	for each in "${recalls[@]}"; do
		wait "$each" || fail "a recall failed"
	done
	[ ! -e "$ktap_dir/late" ] || late=$(wc -l <"$ktap_dir/late")
	[ "$late" -le "${1:-0}" ] || fail "$late of ${#files[@]} recalls took too long"
}

# Whatever was changed at the server, the client has noticed.
files_are_changed() {
	local file

	for file in "${files[@]}"; do
		grep -qsx "$file" "$ktap_dir/late" || grep -q "changed on the server" "$WORK/$file" ||
			fail "the client has not noticed the change of $file"
	done
}

recalls_under_write_load() {
	local count=$((100 * TIMES))

	with_files "$1" 0
	hold_files "$count"
	load_start 16 4
	count_calls
	start_recalls "$PATIENCE"
	end_recalls
	trace_off
	echo "$(calls_seen) reverse Calls, $(replies_seen) Replies," \
		"slowest Reply $(slowest_reply) ms"
	[ "$(calls_seen)" -ge "$count" ] || fail "too few reverse Calls"
	load_stop
	release_files
	files_are_changed
}

# With few credits forward they are used up nearly all the time.
recalls_with_few_forward_credits() {
	local count=40 file=/proc/sys/sunrpc/svc_rdma/max_requests before

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	with_files "$1" 0
	echo "$before" >"$file"
	hold_files "$count"
	load_start 16 4
	start_recalls "$PATIENCE"
	end_recalls
	load_stop
	release_files
	files_are_changed
}

# nfsd forgets a recall when its callback channel is down while it wants to send it: it
# destroys the callback without having sent it, or sent it again, and nobody is told.
# What waits for that delegation waits until it is revoked, after a lease, or for good.
# These are the kernel's own, whatever the transport.
watch_nfsd() {
	local each

	trace_on
	for each in nfsd_cb_destroy nfsd_cb_recall_done nfsd_cb_restart; do
		echo 1 >"$TRACING/events/nfsd/$each/enable"
	done
}

# Recalls that nfsd destroyed before anything was answered to them.
forgotten_by_nfsd() {
	local ended answered

	ended=$(grep -c ' nfsd_cb_destroy: .*opcode=CB_RECALL$' "$TRACING/trace" || true)
	answered=$(grep -c ' nfsd_cb_recall_done: ' "$TRACING/trace" || true)
	# What was not recorded would look forgotten.
	[ "$(events_lost)" -eq 0 ] || ended=0
	echo $((ended > answered ? ended - answered : 0))
}

# disturbed_recalls VERSION COUNT ROUNDS DISTURBANCE
disturbed_recalls() {
	local round forgotten

	with_files "$1" 0
	hold_files "$2"
	load_start
	watch_nfsd
	start_recalls "$PATIENCE"
	for ((round = 0; round < $3; round++)); do
		sleep 2
		"$4" || fail "round $round: $4"
		load_wait_progress
	done
	wait "${recalls[@]}"
	trace_off
	forgotten=$(forgotten_by_nfsd)
	echo "connected $(xprt_stat connect_count) times;" \
		"nfsd forgot $forgotten recalls of ${#files[@]}"
	end_recalls "$forgotten"
	load_stop
	release_files
	[ "$(xprt_stat connect_count)" -gt 1 ] || fail "nothing was disturbed"
}

recalls_through_reconnects() {
	disturbed_recalls "$1" $((40 * TIMES)) $((2 * TIMES)) reconnect
	files_are_changed
	# Whatever became of those, the next ones find the channel.
	work_dir "again-$RANDOM"
	hold_files 10
	start_recalls "$PATIENCE"
	end_recalls
	release_files
	files_are_changed
}

restart() {
	server_stop
	sleep 1
	server_start
}

# A server that has just started knows of no delegations, and whoever changes files
# there need not wait for any: what the client sees of that is up to NFS.
recalls_through_restart() { disturbed_recalls "$1" 40 1 restart; }

# Milliseconds between the first two reverse Calls that the client saw.
first_gap() {
	awk '
		/ xprtrdma_cb_call: / && match($0, /[0-9]+\.[0-9]+: xprtrdma_cb_/) {
			at[++n] = substr($0, RSTART) + 0
		}
		END { printf "%d\n", n < 2 ? 0 : (at[2] - at[1]) * 1000 }' "$TRACING/trace"
}

# The client grants one credit, and what it sends takes longer than nfsd waits, which is
# a tenth of a lease, here a second or, on a slow machine, some. A Call that nfsd has given
# up is outstanding until it is answered: the next one waits (RFC 8166 Section 3.3.1).
R8167_4_1_3_abandoned_calls_hold_credits() {
	local grant=/proc/sys/sunrpc/rdma_max_bc_requests before late=2500 each gap

	[ -e "$grant" ] || skip "only for this module's tunables"
	need_local_bed
	# rxe gives a connection up when nothing was acknowledged for less than four seconds.
	[ "$PACE" -eq 1 ] || skip "such a machine needs a slower link than a device bears"
	server_stop
	BED_LEASE=10 server_start
	before=$(cat "$grant")
	echo 1 >"$grant"
	with_files "$1" 0
	echo "$before" >"$grant"
	# nfsd gives none of a file that looks to it like one recalled a moment ago.
	for each in {0..39}; do
		echo "as it was $each" >"$WORK_ON_SERVER/$each"
		cat "$WORK/$each" >/dev/null
		[ "$(delegations "/$each")" -eq 0 ] || files+=("$each")
		[ ${#files[@]} -lt 2 ] || break
	done
	[ ${#files[@]} -eq 2 ] || fail "no two delegations"
	count_calls
	link_set_delay "$BED_SERVER_PORT" "$late"
	start_recalls $((2 * PATIENCE))
	for each in {1..40}; do
		[ "$(calls_seen)" -lt 2 ] || break
		sleep 0.5
	done
	link_clear_delay "$BED_SERVER_PORT"
	end_recalls
	trace_off
	gap=$(first_gap)
	echo "$(calls_seen) reverse Calls, the second one $gap ms after the first"
	[ "$(calls_seen)" -ge 2 ] || fail "not two reverse Calls were seen"
	[ "$gap" -ge $((late - 100)) ] || fail "two were outstanding"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "the connection was lost"
}

# All credits of the client are in use, by Calls for which nfsd waits for mountd; a thread
# waits for five seconds. The client answers a reverse Call all the same.
R8167_4_1_1_replies_need_no_credit() {
	local file=/proc/sys/sunrpc/svc_rdma/max_requests before each asking=() writer

	need_local_bed
	before=$(cat "$file")
	echo 4 >"$file"
	with_files "$1" 1
	echo "$before" >"$file"
	cat "$WORK/0" >/dev/null
	[ "$(delegations /0)" -eq 1 ] || fail "no delegation to recall"
	count_calls
	pkill -STOP -x rpc.mountd
	exportfs -f
	for each in {1..16}; do
		stat "$WORK/no-$each" >/dev/null 2>"$ktap_dir/asked-$each" &
		asking+=($!)
	done
	sleep 1
	write_here 0 &
	writer=$!
	# Until mountd goes on nobody is given a credit back.
	soon_replied || :
	trace_off
	pkill -CONT -x rpc.mountd
	echo "$(calls_seen) reverse Calls, $(replies_seen) Replies, slowest $(slowest_reply) ms"
	[ "$(calls_seen)" -ge 1 ] || fail "no reverse Call was seen"
	for each in "${asking[@]}"; do
		! wait "$each" || fail "a file that is not there"
	done
	for each in {1..16}; do
		grep -q 'No such file' "$ktap_dir/asked-$each" || fail "$(cat "$ktap_dir/asked-$each")"
	done
	wait "$writer" || fail "the recall failed"
	[ "$(xprt_stat connect_count)" -eq 1 ] || fail "the connection was lost"
	[ "$(replies_seen)" -ge 1 ] || xfail_on_c "it was not answered while there was no credit"
}

# What SUNRPC shows of transports, those that call clients among them.
sysfs_transports_are_readable() {
	local each count=0

	with_files "$1" 1
	for each in /sys/kernel/sunrpc/xprt-switches/*/xprt-*/*; do
		case $each in
		*/del_xprt) continue ;;
		esac
		# Those of nfsd may go at any time.
		cat "$each" >/dev/null || [ ! -e "$each" ] || fail "cannot read $each"
		count=$((count + 1))
	done
	[ "$count" -gt 0 ] || fail "there is no transport that calls"
}

# The client leaves while the server calls it. Not altogether: a thread of Linux's
# callback service that is left with the last reference to its nfs_client waits
# for its own end, for good, whatever the transport (nfs4_callback_compound,
# nfs_callback_down). A mount beside keeps another.
unmount_during_recalls() {
	local version=$1 round amid=0

	nfs_mount_at "$MNT-beside" "$version" rdma nosharecache
	for round in 1 2 3; do
		with_files "$version" 40
		cat "$WORK"/{0..39} >/dev/null
		enough_delegations 10
		start_recalls "$LEASE"
		# On a machine that is fast only the first round may be early enough.
		[ "$round" -eq 1 ] || sleep "0.$((RANDOM % 4))"
		[ "$(delegations '/[0-9]*')" -eq 0 ] || amid=$((amid + 1))
		cd / && nfs_umount
		end_recalls
	done
	[ "$amid" -gt 0 ] || fail "all was recalled before the client left"
}

# How often SUNRPC wanted one of the server's own Calls sent.
attempts_to_call() {
	awk '
		!match($0, /task:[0-9a-f]+@[0-9a-f]+/) { next }
		{ client = substr($0, RSTART, RLENGTH); sub(/.*@/, "", client) }
		/ rpc_request: / { calls[client] }
		/ xprt_transmit: / && client in calls { n++ }
		END { print n + 0 }' "$CALLBACK_TRACE/trace" "$TRACING/trace"
}

# nfsd has no thread that would close the connection that the client has just given up,
# and wants to call. SUNRPC, which tries again at once on what it takes for connected, must
# not do so until there is one.
dead_client_is_not_called_in_a_loop() {
	local tried calls losing

	with_files "$1" 1
	cat "$WORK/0" >/dev/null
	[ "$(delegations /0)" -eq 1 ] || fail "no delegation to recall"
	trace_on
	callback_trace_on
	echo 1 >"$TRACING/events/sunrpc/xprt_transmit/enable"
	delay_fn entry '^svc_delete_xprt$' 5000
	reconnect &
	losing=$!
	wait_delay_hits || fail "the server did not lose its connection"
	recall 6000 0
	trace_off
	unload_fault_modules
	wait "$losing" || fail "the client did not connect again"
	tried=$(attempts_to_call)
	calls=$(($(grep -c ' rpc_request: ' "$CALLBACK_TRACE/trace") + $(events_lost "$CALLBACK_TRACE")))
	callback_trace_off
	echo "$tried attempts to send, $(events_lost) not recorded, for $calls Calls of nfsd"
	[ $((tried + $(events_lost))) -lt 20 ] || fail "a client that was gone was called in a loop"
	[ "$tried" -gt 0 ] || fail "nobody was called"
}

# Whichever way a test ended, the next one finds mountd as usual.
test_cleanup() {
	cd /
	unload_fault_modules
	trace_off
	callback_trace_off
	! bed_is_local || pkill -CONT -x rpc.mountd || :
	umount_all
} 2>/dev/null

shorten_grace
bed_up
TEST_TIMEOUT=$((TEST_TIMEOUT * 2 * TIMES))
[ $# -eq 0 ] || ktap_run "$@"
if [ -n "${LOADED:-}" ]; then
	ktap_run "recalls_under_write_load 4.1" "recalls_under_write_load 4.2" \
		"recalls_with_few_forward_credits 4.2" \
		"recalls_through_reconnects 4.2" "recalls_through_restart 4.2"
fi
ktap_run ${LONG:+"idle_connection_keeps_backchannel 4.2"} \
	"backchannel_is_up 4.1" "backchannel_is_up 4.2" \
	"read_delegation_is_recalled 4.1" "read_delegation_is_recalled 4.2" \
	"write_delegation_is_recalled 4.2" \
	"sysfs_transports_are_readable 4.2" \
	"R8167_4_1_1_replies_need_no_credit 4.2" \
	"unmount_during_recalls 4.2" \
	"dead_client_is_not_called_in_a_loop 4.2" \
	"R8167_4_1_3_abandoned_calls_hold_credits 4.2"
