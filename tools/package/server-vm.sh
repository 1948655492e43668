# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # tools/package/test-guest sets work, here and server
#
# Works on a copy of the server's disk (server.sh): runs commands in it by chroot, and boots it
# with its own kernel and initial RAM disk. Sourced by tools/package/test-guest. work is the
# directory of the copy, here this directory, and server that of the original disk.

# with_disk COMMAND...: runs COMMAND in a namespace where the disk is mounted at $work/root.
with_disk() {
	# shellcheck disable=SC2016 # expanded by the shell in the namespace
	unshare --mount --propagation private sh -euc '
		work=$1
		shift
		mount -o loop,noatime "$work/disk.img" "$work/root"
		"$@"
		umount "$work/root"' with_disk "$work" "$@"
}

# in_server COMMAND...: runs COMMAND in the disk by chroot, without a network.
in_server() {
	# shellcheck disable=SC2016 # as above
	with_disk sh -euc '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount -t sysfs sysfs "$root/sys"
		mount -t tmpfs tmpfs "$root/run"
		mount --rbind /dev "$root/dev"
		unshare --net chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" || status=$?
		# What the installation has started may end a moment later.
		for at in dev run sys proc; do
			timeout 20 sh -c "until umount -R \"\$1\"; do sleep 1; done" umount "$root/$at"
		done
		exit ${status:-0}' in_server "$work/root" "$@"
}

# put FILE... DIRECTORY: copies into the disk.
put() {
	# shellcheck disable=SC2016 # as above
	with_disk sh -euc 'to=$1/$2; shift 2; mkdir -p "$to"; cp -r "$@" "$to"' put "$work/root" \
		"${@: -1}" "${@:1:$#-1}"
}

# get PATH FILE: copies out of the disk.
get() {
	# shellcheck disable=SC2016 # as above
	with_disk sh -euc 'cp -L "$1/$2" "$3"' get "$work/root" "$@"
}

# command_line STAGE: prints the command line of the guest's kernel; see tools/vm/qemu.sh. An
# emulated processor counts the cycles of this machine, but on a busy machine the guest
# measures another frequency, and reports lockups.
command_line() {
	local clock=''
	[ "${VM_ACCEL:-tcg}" = kvm ] ||
		clock="clocksource=hpet tsc_early_khz=$(awk '/^cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo)"
	echo "root=LABEL=server rw console=ttyS0,115200 panic=-1 oops=panic mitigations=off" \
		"tsc=reliable no_timer_check watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60" \
		"net.ifnames=0 systemd.default_timeout_start_sec=600 $clock package_test=$1"
}

# qemu_server STAGE [OPTION...]: sets the array qemu. The first serial line is the console.
qemu_server() {
	local stage=$1
	shift
	qemu=(qemu-system-x86_64 -nodefaults -no-user-config -display none -m 2G -smp 2)
	if [ "${VM_ACCEL:-tcg}" = kvm ]; then
		qemu+=(-accel kvm -cpu host)
	else
		qemu+=(-accel "tcg,thread=multi" -cpu "max,la57=off")
	fi
	qemu+=(-drive "file=$work/disk.img,format=raw,if=none,id=disk,cache=unsafe,snapshot=${SNAPSHOT:-off}"
		-device "virtio-blk-pci,drive=disk,bootindex=2" -device virtio-rng-pci
		-serial chardev:console -chardev "file,id=results,path=$work/$stage.results"
		-serial chardev:results "$@")
}

# boot STAGE KERNEL: boots the disk with this kernel, where tools/package/server-guest.sh runs
# the tests of the stage, and prints their results. Fails without a result if the guest does.
boot() {
	local stage=$1 release=$2 log=$work/$1.kernel

	get "boot/vmlinuz-$release" "$work/vmlinuz"
	get "boot/initrd.img-$release" "$work/initrd"
	qemu_server "$stage" -no-reboot -chardev "file,id=console,path=$log" -kernel "$work/vmlinuz" \
		-initrd "$work/initrd" -append "$(command_line "$stage")"
	timeout "${LIMIT:-900}" "${qemu[@]}" </dev/null || echo "# the guest ended with status $?"
	results_of "$stage"
}

# results_of STAGE: prints the results of a guest, and one for the guest itself.
results_of() {
	local stage=$1 said result='not ok'

	! grep -q '^# end of the stage' "$work/$stage.results" || result=ok
	# The firmware writes to this line as well.
	grep -aE '^(#|ok |not ok |1\.\.)' "$work/$stage.results"
	said=$("$here/../vm/scan-log" "$work/$stage.kernel" 2>&1) || result='not ok'
	[ -z "$said" ] || sed 's/^/# /' <<<"$said"
	[ "$result" = ok ] || tail -n 30 "$work/$stage.kernel" | sed 's/^/# /'
	echo "$result - the guest of stage $stage ends with a clean kernel log"
}

# make_boot_disk STAGE RELEASE: makes a disk by which firmware boots the server: shim, GRUB and
# the kernel, which Microsoft and Debian have signed.
make_boot_disk() {
	# shellcheck disable=SC2016 # expanded by the shell in the disk
	in_server sh -euc '
		mkdir -p /tests/esp/EFI/BOOT /tests/esp/EFI/debian
		cd /tests/esp
		cp /usr/lib/shim/shimx64.efi.signed EFI/BOOT/BOOTX64.EFI
		cp /usr/lib/shim/mmx64.efi.signed EFI/BOOT/mmx64.efi
		cp /usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed EFI/BOOT/grubx64.efi
		cp "/boot/vmlinuz-$1" vmlinuz
		cp "/boot/initrd.img-$1" initrd
		printf "%s\n" "set timeout=0" "menuentry server {" "linux /vmlinuz $2" "initrd /initrd" "}" \
			>EFI/debian/grub.cfg
		truncate -s 256M ../esp.img
		mkfs.vfat -F 32 ../esp.img >/dev/null
		mcopy -s -i ../esp.img EFI vmlinuz initrd ::
		rm -r ../esp' make_boot_disk "$2" "$(command_line "$1")"
	get tests/esp.img "$work/esp.img"
}

# secure_boot STAGE RELEASE: boots by firmware with Secure Boot, which trusts Microsoft's keys.
# The key that a guest has imported is enrolled when the next one boots.
secure_boot() {
	local stage=$1 firmware=$server/ovmf/usr/share/OVMF variables=$work/variables.fd

	[ -f "$variables" ] || cp "$firmware/OVMF_VARS_4M.ms.fd" "$variables"
	make_boot_disk "$stage" "$2"
	qemu_server "$stage" -chardev stdio,id=console,signal=off -machine q35,smm=on \
		-global driver=cfi.pflash01,property=secure,value=on \
		-drive "if=pflash,format=raw,unit=0,file=$firmware/OVMF_CODE_4M.secboot.fd,readonly=on" \
		-drive "if=pflash,format=raw,unit=1,file=$variables" \
		-drive "file=$work/esp.img,format=raw,if=none,id=esp,snapshot=on" \
		-device virtio-blk-pci,drive=esp,bootindex=1
	timeout "${LIMIT:-900}" "$here/mok-manager" "$work/$stage.kernel" password "${qemu[@]}" ||
		echo "# the guest ended with status $?"
	results_of "$stage"
}
