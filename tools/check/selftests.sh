# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Tests of the library of the selftests, without a guest and without a test bed.

# bed_commands MACHINE: prints the output of bed_up, and the calls of rpc.nfsd that it and the end of
# the program make. MACHINE defines functions for what the machine has. All programs are replaced by
# functions: none of this machine is found.
bed_commands() {
	local dir
	dir=$(mktemp -d)
	# shellcheck disable=SC2016 # expanded by the inner shell
	PATH=/nowhere "$BASH" -c '
		. selftests/lib/ktap.sh
		. selftests/lib/bed.sh
		BED_DIR=$1
		mkdir() { :; }
		touch() { >"$1"; }
		id() { echo 0; }
		cat() { echo 0; }
		tee() { :; }
		seq() { :; }
		for each in modprobe mountpoint mount umount umount_all rm ip rdma nsenter exportfs \
			client_wait_idle server_daemons bounce_begin bounce_end module_users module_wait_unused; do
			eval "$each() { :; }"
		done
		rpc.nfsd() { echo "rpc.nfsd $*" >&3; }
		eval "$2"
		bed_up
	' bed_commands "$dir" "$1" 3>&1 2>&1
	rm -r "$dir"
}

# The bed stops the server that it has started, and no other.
rule_test_bed() {
	diff - <(bed_commands 'server_start() { echo "the server starts" >&3; }') <<-'END'
		the server starts
		rpc.nfsd 0
	END
	diff - <(bed_commands 'server_start() { echo "no threads"; return 1; }') <<-'END'
		rpc.nfsd 0
		Bail out! no test bed: no threads
	END
	diff - <(bed_commands 'modprobe() { echo "no module $1"; return 1; }') <<-'END'
		Bail out! no test bed: no module rdma_rxe
	END
	diff - <(bed_commands 'cat() { echo 8; }') <<-'END'
		Bail out! no test bed: an NFS server is running already
	END
}

# A program that ignores the tests named, and one that is to run a test which it does not have.
rule_test_named_tests() {
	local dir
	expect_report named_tests ktap_run selftests/a.sh bed_up 'ktap_run reads writes'
	dir=$(mktemp -d)
	cp selftests/lib/ktap.sh "$dir"
	cat >"$dir/a.sh" <<-'END'
		cd "$(dirname "$0")" && . ./ktap.sh
		bed_up() { :; }
		helper() { :; }
		reads() { :; }
		writes() { :; }
		bed_up
		[ $# -gt 0 ] || set -- "reads 3" ${LONG:+"writes 4.2"}
		ktap_run "$@"
	END
	diff - <(bash "$dir/a.sh" "reads 4.2" "opens 3" 2>&1) <<-'END'
		Bail out! there is no test "opens"; the tests are: reads writes
	END
	rm -r "$dir"
}
