# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Boots a guest: one serial line for the kernel log, one for the output of the script.
# Sourced by tools/vm/run.

# Time limit of the first boot to user space, in seconds, for a busy machine without KVM.
# The limit of boot N is N times as long.
boot_limit=180
boot_trials=3

# Tests plant another file.
kvm_device=${KVM_DEVICE:-/dev/kvm}

# Adjusts limits for the KASAN/lockdep kernel, which is many times slower and needs memory
# for shadow memory and records. The command line keeps all that user space writes to the
# log, and all KASAN reports instead of the first.
debug_kernel() {
	local unit=${memory##*[0-9]}
	limit=$((limit * 8)) boot_limit=600
	memory=$((${memory%"$unit"} * 2))$unit
	VM_CMDLINE="printk.devkmsg=on kasan_multi_shot ${VM_CMDLINE-}"
}

# machine_amd64: sets the array qemu to the emulator and its machine, cpu to the emulated
# processor, and append to what the kernel's command line has for this machine.
machine_amd64() {
	qemu=(qemu-system-x86_64 -serial chardev:klog -serial chardev:payload)
	# Five-level paging makes some boots under TCG die very early.
	cpu=max,la57=off
	append='console=ttyS0,115200 tsc=reliable no_timer_check'
	# The guest calibrates the TSC at boot, which goes wrong by any factor on a busy
	# machine. The frequency of the HPET is known.
	[ -n "$icount" ] || [ "$accel" = kvm ] || append+=' clocksource=hpet'
}

# machine_arm64: as machine_amd64. The machine has one serial line. A second is on the PCI bus.
# The processor has pages of 16 KiB, too, and no pointer authentication, which is slow to
# emulate.
machine_arm64() {
	qemu=(qemu-system-aarch64 -machine "virt,gic-version=3" -serial chardev:klog
		-device "pci-serial,chardev=payload")
	cpu=neoverse-n1
	append='console=ttyAMA0'
}

# qemu_command: sets the array qemu to the command line.
qemu_command() {
	local smp=${cpus:-2} disk number=0 cpu append
	"machine_$(architecture)"
	# Idle time of such a guest is skipped, and the host's disk is not: a read may take minutes.
	[ -z "$icount" ] || append+=' sysctl.kernel.hung_task_timeout_secs=0'
	qemu+=(-nodefaults -no-user-config -display none -no-reboot
		-m "$memory" -kernel "$base/vmlinuz" -initrd "$run/initrd"
		-append "$append rdinit=/init panic=-1 oops=panic mitigations=off net.ifnames=0 watchdog_thresh=30 slab_nomerge trace_options=norecord-cmd rcupdate.rcu_cpu_stall_timeout=60 loglevel=7 ${VM_CMDLINE-}"
		-chardev "file,id=klog,path=$log" -device virtio-rng-pci)
	if [ -n "$icount" ]; then
		smp=${cpus:-1}
		qemu+=(-accel "tcg,thread=single" -icount "shift=0,sleep=off" -cpu "$cpu")
	elif [ "$accel" = kvm ]; then
		qemu+=(-accel kvm -cpu host)
	else
		qemu+=(-accel "tcg,thread=multi" -cpu "$cpu")
	fi
	qemu+=(-smp "$smp" ${plugin:+-plugin "$plugin"})
	for disk in ${disks[@]+"${disks[@]}"}; do
		qemu+=(-drive "file=$disk,format=raw,if=none,id=disk$((number += 1)),cache=unsafe"
			-device "virtio-blk-pci,drive=disk$number")
	done
	# Writes to the boot disk go to a temporary file (snapshot=on). If there is no room for
	# it, report an error to the guest; by default QEMU would pause the guest.
	# shellcheck disable=SC2054 # QEMU's commas
	qemu+=(-drive "file=$base/root.img,format=raw,if=none,id=root,snapshot=on"
		-device virtio-blk-pci,drive=root,serial=root,werror=report,rerror=report)
	if [ -n "$share" ]; then
		qemu+=(-virtfs "local,path=$share,mount_tag=share,security_model=none")
	fi
	# A stream socket drops no packet under load.
	case $link in
	listen:*)
		qemu+=(-netdev "stream,id=link,server=on,addr.type=unix,addr.path=${link#*:}"
			-device "virtio-net-pci,netdev=link,mac=52:54:00:00:00:01") ;;
	connect:*)
		qemu+=(-netdev "stream,id=link,server=off,addr.type=unix,addr.path=${link#*:}"
			-device "virtio-net-pci,netdev=link,mac=52:54:00:00:00:02") ;;
	esac
	cat "$base/early.cpio" "$run/overlay.cpio" >"$run/initrd" ||
		fail "no space for the guest's initramfs in $run" "free some, or set TMPDIR to another directory"
}

# choose_accel: replaces "auto" by kvm or tcg. Some machines have /dev/kvm and cannot run a
# kernel under it, so the decision takes a trial boot of this kernel. It is kept until the
# machine reboots. Instruction counts and another architecture need TCG.
choose_accel() {
	local known
	case $accel in
	auto) ;;
	kvm) [ -w "$kvm_device" ] || fail "KVM was requested, but $kvm_device cannot be opened" \
			"load kvm_intel or kvm_amd, or omit VM_ACCEL and --accel"
		return 0 ;;
	*) return 0 ;;
	esac
	accel=tcg
	! foreign && [ -z "$icount" ] && [ -w "$kvm_device" ] || return 0
	mkdir -p "$CACHE/records"
	known=$(kvm_record "$base")
	# The first of several runs tries, the others wait for it.
	exec {trial_lock}>>"$known.lock"
	flock "$trial_lock"
	if [ -f "$known" ]; then
		accel=$(cat "$known")
	else
		accel=$(try_kvm)
		echo "$accel" >"$known"
	fi
	exec {trial_lock}>&-
}

# try_kvm: prints the accelerator by which a trial boot succeeds.
try_kvm() {
	if "$vm_dir/run" --accel kvm --trial --module none --time 20 \
		"$vm_dir/guest/true.sh" >/dev/null 2>&1; then
		echo kvm
	else
		echo "vm: /dev/kvm exists, but a trial boot under KVM failed: emulating the processor until the next reboot" >&2
		echo tcg
	fi
}

# boot: runs the script to its end. A guest that does not reach user space is started
# again, because emulated boots sometimes fail. Failures after that are not retried here.
boot() {
	local trial
	qemu_command
	await_link
	for ((trial = 1; trial <= boot_trials; trial++)); do
		: >"$run/output"
		start_vm
		if await_user_space; then
			case $link in listen:*) : >"${link#*:}.up" ;; esac
			await_end
			return 0
		fi
		stop_vm
		echo "vm: boot $trial of $boot_trials did not reach user space" >&2
	done
	return 1
}

# await_link: waits until the listening guest has reached user space, for as long as all its
# boots may take. QEMU cannot reconnect to a guest that is started again.
await_link() {
	local end=$((SECONDS + boot_limit * boot_trials * (boot_trials + 1) / 2))
	case $link in
	connect:*)
		until [ -e "${link#*:}.up" ]; do
			[ $SECONDS -lt $end ] || fail "no guest listens at ${link#*:}" \
				"read the output of the run with --link listen:${link#*:}"
			sleep 0.1
		done ;;
	esac
}

start_vm() {
	mkfifo "$run/pipe.$trial"
	tee "$run/output" <"$run/pipe.$trial" | sed -u '/^@@vm /d' &
	reader=$!
	"${qemu[@]}" -chardev stdio,id=payload,signal=off </dev/null >"$run/pipe.$trial" &
	vm_pid=$!
}

stop_vm() {
	[ -n "${vm_pid-}" ] || return 0
	kill "$vm_pid" 2>/dev/null || true
	vm_ended
	qemu_status=0
}

# vm_ended: waits for QEMU and sets qemu_status to its exit status.
vm_ended() {
	qemu_status=0
	wait "$vm_pid" 2>/dev/null || qemu_status=$?
	wait "$reader" 2>/dev/null || true
	vm_pid=''
}

await_user_space() {
	local end=$((SECONDS + boot_limit * trial))
	while ! grep -qs '^@@vm up' "$run/output"; do
		kill -0 "$vm_pid" 2>/dev/null || {
			# It may have reached user space since.
			wait "$reader" 2>/dev/null || true
			grep -qs '^@@vm up' "$run/output"
			return
		}
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

await_end() {
	local end=$((SECONDS + limit))
	while kill -0 "$vm_pid" 2>/dev/null; do
		if [ $SECONDS -ge $end ]; then
			stop_vm
			echo '@@vm exit timeout' >>"$run/output"
			return 0
		fi
		sleep 0.1
	done
	vm_ended
}

payload_status() {
	sed -n 's/^@@vm exit //p' "$run/output" | tail -n 1
}
