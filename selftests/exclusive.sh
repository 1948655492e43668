#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# RDMA devices that belong to one network namespace each (rdma system set netns exclusive). Software
# devices cannot be moved (ib_device_set_netns_put()), so all of them belong to the first namespace.

cd "$(dirname "$0")" && . ./lib.sh || exit 1

# The bed's namespaces have to be made afterwards.
exclusive_begin() {
	bed_has_link || ktap_skip_all "needs a client in a namespace of its own"
	[ ! -e "$BED_DIR/made" ] || ktap_skip_all "the bed is made already"
	modprobe -a rdma_rxe rpcrdma
	rdma system set netns exclusive || ktap_skip_all "devices cannot be separated"
}

exclusive_end() {
	bed_down
	rdma system set netns shared
}

# The client's namespace has no device. A mount there fails, and the log says why; one by TCP works.
namespace_has_no_device() {
	! with_client_sysfs rdma link show | grep . || fail "the client has a device"
	! nfs_mount 4.2 rdma retry=0 || fail "mounted without a device"
	[ "$(module_kind)" = c ] ||
		log_since_mark | grep "cannot connect to $SERVER4:$BED_PORT: no RDMA device" ||
		fail "the log does not say why"
	nfs_mount 4.2 tcp
}

# A client in the namespace of the devices uses them.
namespace_with_devices() {
	bed_has_link() { false; }
	nfs_mount "$1" rdma
	work_dir verified
	SIZE_MIB=2 fio_verified 2 --direct=1 --ioengine=libaio --iodepth=4
	reconnect
	touch "$WORK/again"
	rm -r "$WORK"
}

test_cleanup() {
	cd /
	umount_all
} 2>/dev/null

exclusive_begin
bed_up
trap exclusive_end EXIT
[ $# -gt 0 ] || set -- namespace_has_no_device "namespace_with_devices 3" \
	"namespace_with_devices 4.2"
ktap_run "$@"
