# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The server's guest: set-up of /export, and a loop that runs the client's commands.

# shellcheck source=../../vm/guest/rdma.sh
. /vm/rdma.sh
# shellcheck source=../../vm/guest/nfs.sh
. /vm/nfs.sh
# shellcheck source=../../vm/guest/pair.sh
. /vm/pair.sh

# server_set_up SIZE: brings up the link and makes an empty /export. nfsd grants no delegation
# during the grace period of NLM, which is shortened here.
server_set_up() {
	rdma_link_up $SERVER4 $SERVER6
	modprobe lockd
	echo 3 >/proc/sys/fs/nfs/nlm_timeout
	echo 3 >/proc/sys/fs/nfs/nlm_grace_period
	printf '[nfsd]\nvers4.0=y\n' >>/etc/nfs.conf
	mkdir -p /export
	mount -t tmpfs -o "size=$1,mode=1777" tmpfs /export
}

# serve: serves /export and runs the commands of on_server (client.sh) one after the other,
# until the client's script has ended.
serve() {
	local number=1 status words

	nfs_server_up /export
	tell served
	until [ -e /share/stop ]; do
		if [ ! -e "/share/asked.$number" ]; then
			sleep 0.2
			continue
		fi
		read -ra words <"/share/asked.$number"
		status=0
		"${words[@]}" >"/share/said.$number" 2>&1 || status=$?
		echo "${words[*]}: $status"
		echo "$status" >/share/answer
		mv /share/answer "/share/answered.$number"
		number=$((number + 1))
	done
	nfs_server_down
}

# set_switch NAME VALUE: sets a sysctl of the server, if the module has it.
set_switch() {
	local switch=/proc/sys/sunrpc/svc_rdma/$1

	[ ! -e "$switch" ] || echo "$2" >"$switch"
}
