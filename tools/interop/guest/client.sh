# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The client's guest: set-up, and commands on the server. Tests use the functions of
# selftests/lib.sh with the server in the other guest.

# shellcheck source=../../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../../vm/guest/pair.sh
. /vm/pair.sh
export RPCRDMA_SERVER=$SERVER4 RPCRDMA_EXPORT=/export HELPERS=/selftests/helpers
cd /selftests || exit
# shellcheck source=../../../selftests/lib.sh
. ./lib.sh

client_set_up() {
	rdma_link_up 192.168.20.2 fd20::2
	modprobe -a rpcrdma nfsv3 nfsv4
	await served
}

# on_server COMMAND...: runs a command or function in the server's guest (serve in server.sh),
# prints its output, and returns its status.
on_server() {
	local number left=1200

	number=$(($(cat /share/number 2>/dev/null || echo 0) + 1))
	echo "$number" >/share/number
	echo "$*" >/share/asking
	mv /share/asking "/share/asked.$number"
	until [ -e "/share/answered.$number" ]; do
		[ "$left" -gt 0 ] || fail "the server's guest did not run: $*"
		left=$((left - 1))
		sleep 0.2
	done
	cat "/share/said.$number"
	return "$(cat "/share/answered.$number")"
}
