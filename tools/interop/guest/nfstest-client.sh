#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The client's guest of tools/interop/nfstest: runs each group of nfstest's suites as a test.
# shellcheck disable=SC2154 # ktap_dir is from selftests/lib
# shellcheck source=client.sh
. /interop/client.sh

# The full output of nfstest goes to this descriptor, apart from the results.
exec {full}>&1

export PYTHONPATH=/interop/python

# nfstest SUITE VERSION GROUP: fails if nfstest reports a failure that nfstest.known does not
# explain. To end a trace nfstest kills the shell that has started tcpdump; "exec" makes
# both one process.
nfstest() {
	local suite=$1 version=$2 group=$3 log=$ktap_dir/nfstest options=hard status=0

	# mountd does not listen on RDMA.
	[ "$version" != 3 ] || options+=,mountproto=tcp
	"nfstest_$suite" --runtest "$group" \
		--server "$SERVER4" --export /export --proto rdma --port 20049 \
		--nfsversion "$version" --mtopts "$options" --mtpoint /mnt/nfstest \
		--interface eth0 --tcpdump "exec tcpdump" --tbsize 16k \
		--bugmsgs /interop/nfstest.known --warnings >"$log" 2>&1 || status=$?
	sed "s/^/nfstest: /" "$log" >&"$full"
	awk -f /interop/nfstest.awk "$log" || status=1
	return "$status"
}

# add SUITE GROUP VERSION...: adds a case for each of these versions that was requested.
add() {
	local version suite=$1 group=$2
	shift 2

	[[ " $SUITES " = *" $suite "* ]] || return 0
	for version; do
		[[ " $VERSIONS " != *" $version "* ]] || cases+=("nfstest $suite $version $group")
	done
}

# NFSv4.0 has no backchannel over RDMA, and nfstest 3.2 does not know the NFSv4.2 delegations
# without open state (RFC 9754).
cases=()
add posix all 3 4.0 4.1 4.2
add delegation basic 4.1
add delegation recall 4.1
add rdma basic 3 4.0 4.1 4.2
add rdma read 3 4.0 4.1 4.2
add rdma write 3 4.0 4.1 4.2

client_set_up || exit
# nfstest finds this machine's address by the default route.
ip route add default via "$SERVER4"
# NFSv3 locks need rpcbind and statd at the client, too.
mkdir -p /run/rpcbind /run/sendsigs.omit.d
rpcbind -w && rpc.statd --no-notify || exit
# The server grants no delegations during its grace period.
on_server sleep 15
export TEST_TIMEOUT=3600
echo "# run on $(date -u +%F) $(cat /interop-nfstest)"
ktap_run "${cases[@]}"
