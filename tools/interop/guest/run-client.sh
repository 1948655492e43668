#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/run: the tests of each mount. At the end of each test,
# client and server must have the same files.
# shellcheck disable=SC2154 # ktap_dir and STAT_sends are from selftests/lib
# shellcheck source=client.sh
. /interop/client.sh
# shellcheck source=kerberos.sh
. /interop/kerberos.sh

# rxe logs each connection that ran out of retries (12).
# shellcheck disable=SC2034 # used by log.sh
LOG_EXPECTED='rxe0: qp#[0-9]+ make_send_cqe: non-flush error status = 12
'

read -r _ server_module <<<"$INTEROP"

checksums() { (cd "$1" && find . -type f -exec sha256sum {} + | sort | sha256sum); }

# same_on_server VERSION OPTION...: mounts again, and compares checksums with the server.
same_on_server() {
	nfs_remount "$1" rdma "${@:2}"
	[ "$(checksums "$WORK")" = "$(on_server checksums "$WORK_ON_SERVER")" ] ||
		fail "the server has other data"
}

# many COUNT: creates small files, in a directory whose listing takes several Replies.
many() {
	local i

	mkdir "$WORK/many"
	for ((i = 0; i < $1; i++)); do
		echo "content $i" >"$WORK/many/a-name-of-some-length-$i"
	done
}

long_value() { head -c 60000 /dev/zero | tr '\0' v; }

# has_attributes VERSION OPTION...: whether files have extended attributes (RFC 8276). With
# krb5p the kernel fails to set one, over TCP as well.
has_attributes() { [ "$1" = 4.2 ] && [ "${2-}" != sec=krb5p ]; }

# mixed VERSION OPTION...: mounts, runs the workload, and compares with the server.
mixed() {
	nfs_mount "$1" rdma "${@:2}"
	work_dir "workload-$RANDOM"
	cp -r /tree "$WORK/tree"
	many 100
	"$HELPERS/io_sizes_helper" "$WORK" - direct buffered fresh 0 1 4097 65536 1048576 ||
		fail "wrong data"
	"$HELPERS/io_sizes_helper" "$WORK" - buffered direct over 5 4093 65539 1048579 ||
		fail "wrong data"
	"$HELPERS/direct_helper" "$WORK/large" 12 131072 1048576 183500 || fail "wrong data"
	fio --name=verified --directory="$WORK" --numjobs=4 --size=1M --rw=randwrite \
		--bsrange=512-256k --bs_unaligned --randrepeat=1 --verify=crc32c \
		--verify_fatal=1 --do_verify=1 --end_fsync=1 --group_reporting \
		--output="$ktap_dir/fio" || { tail -n 20 "$ktap_dir/fio"; fail "fio found a difference"; }
	! has_attributes "$@" || setfattr -n user.long -v "$(long_value)" "$WORK/large"
	same_on_server "$@"
	on_server diff -r /tree "$WORK_ON_SERVER/tree" || fail "another tree"
	[ "$(find "$WORK/many" -type f | wc -l)" -eq 100 ] || fail "other names"
	! has_attributes "$@" || [ "$(long_value)" = \
		"$(getfattr --absolute-names --only-values -n user.long "$WORK/large")" ] ||
		fail "another value of an attribute"
	rm -r "$WORK"
}

# With sec=sys: without an option, NFSv4 takes Kerberos if rpc.gssd has begun to answer, and the
# server then maps root to "nobody".
workload() { mixed "$1" sec=sys; }

nconnect() {
	mixed "$1" sec=sys "nconnect=$2"
	[ "$(xprt_lines | awk -v sends="$STAT_sends" '$sends > 10' | wc -l)" -eq "$2" ] ||
		fail "not all connections carried something"
}

security() { mixed "$1" "sec=$2"; }

# The C server sometimes sends data that differs from the data it has signed, to either client,
# whose application gets EIO, or a short READ if an RPC before that succeeded. Turns a failure into
# XFAIL if the server is the C module and both the error and the bad signature were seen.
excuse_signatures() {
	local status=$?

	set +e
	test_cleanup
	[ "$status" -ne 0 ] && [ "$server_module" = c ] || exit "$status"
	grep -qE 'Input/output error|: only [0-9]+ bytes' "$ktap_dir/output" || exit "$status"
	grep -q 'rpcgss_verify_mic: .*BAD_SIG' "$TRACING/trace" || exit "$status"
	echo "the C server sends data that differs from what it signed, to the C client, too" \
		>"$ktap_dir/reason"
	exit "$KSFT_XFAIL"
}

# Checks that no traced Call has a reduced data item in a chunk, or room for one: such items are
# not protected (RFC 8166 Section 8.2.2.3).
nothing_is_reduced() {
	local calls reduced

	calls=$(traced xprtrdma_marshal)
	reduced=$(grep ' xprtrdma_marshal: ' "$TRACING/trace" |
		grep -cE '( read list/|/write list)' || true)
	echo "$calls Calls, $reduced of them with reduced items"
	[ "$calls" -gt 100 ] || fail "only $calls Calls were seen"
	[ "$reduced" -eq 0 ] || fail "a Call with reduced items is not protected"
}

# A protected Reply is not reduced, so a READ's Reply is long. Between two of this module such
# Replies are pulled, until the client has learned that they are always long.
protected() {
	local counter=/proc/sys/sunrpc/rdma_stat_pulled before pulled

	before=$(cat $counter 2>/dev/null || echo 0)
	trace_on xprtrdma_marshal
	echo 1 >"$TRACING/events/rpcgss/rpcgss_verify_mic/enable"
	trap excuse_signatures EXIT
	security "$@"
	trap ktap_cleanup EXIT
	trace_off
	nothing_is_reduced
	pulled=$(($(cat $counter 2>/dev/null || echo 0) - before))
	echo "$pulled Replies were pulled"
	[ "$INTEROP" != "ours ours" ] || [ "$pulled" -gt 0 ] || fail "no Reply was pulled"
	[ "$INTEROP" = "ours ours" ] || [ "$pulled" -eq 0 ] || fail "the C module's Replies were pulled"
}

krb5() { security "$1" krb5; }
krb5i() { protected "$1" krb5i; }
krb5p() { protected "$1" krb5p; }

# disturbed LEAST VERSION COMMAND...: runs COMMAND while writers verify their data. The writers
# must continue, and the client must have connected at least LEAST times more.
disturbed() {
	local connects least=$1

	shift
	nfs_mount "$1" rdma sec=sys
	work_dir "disturbed-$RANDOM"
	load_start 4 16
	connects=$(xprt_stat connect_count)
	"${@:2}"
	load_wait_progress
	load_stop
	connects=$(($(xprt_stat connect_count) - connects))
	echo "connected $connects times more"
	[ "$connects" -ge "$least" ] || fail "the connection was not disturbed"
	same_on_server "$1" sec=sys
	rm -r "$WORK"
}

cut_for() {
	local before dropped

	before=$(wire_dropped)
	on_server wire_loses 100
	wire_loses 100
	sleep "$1"
	wire_loses 0
	on_server wire_loses 0
	dropped=$(($(wire_dropped) - before))
	echo "$dropped packets of the client were dropped, $(on_server wire_dropped) of the server"
	[ "$dropped" -gt 0 ] || fail "the cut dropped no packet"
}

other_module() { if [ "$server_module" = c ]; then echo ours; else echo c; fi; }

# The mount survives a change of the server's module to the other one, and back.
swapped() {
	on_server restart "$(other_module)"
	load_wait_progress
	on_server restart "$server_module"
}

reconnects() { disturbed 1 "$1" reconnect; }
restart() { disturbed 1 "$1" on_server restart; }
swap() { disturbed 2 "$1" swapped; }
# A connection survives a short cut; after 30 s it must have been lost.
wire() { disturbed $(($2 >= 30)) "$1" cut_for "$2"; }

# column WHAT [ARGUMENT...]: adds the test for each version, if it was requested.
column() {
	local version arguments=${*:2}

	[ -z "$ONLY" ] || [[ " $ONLY " = *" $1 "* ]] || return 0
	for version in $VERSIONS; do
		[ "${1#krb5}" = "$1" ] || [ "$version" = 4.2 ] || continue
		cases+=("$1 $version${arguments:+ $arguments}")
	done
}

cases=()
column workload
column restart
column swap
column reconnects
for flavour in krb5 krb5i krb5p; do column $flavour; done
for seconds in $CUTS; do column wire "$seconds" s; done
column nconnect 4

client_set_up || exit
if [[ ${cases[*]} = *krb5* ]]; then
	on_server kerberos_server && kerberos_client || exit
fi
echo "# run on $(date -u +%F)"
ktap_run "${cases[@]}"
