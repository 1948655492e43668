# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What a virtual machine boots: the guest root and the kernel's modules as one
# disk, and an archive with no more than it takes to get there. The C rpcrdma is
# kept beside them; each run says which one it wants.

make_base() {
	local out=$1 kernel release modules dir
	kernel=$(kernel_path)
	release=$(cat "$kernel/release")
	dir=usr/lib/modules/$release
	modules=$out/modules/$dir
	mkdir -p "$modules"
	cp "$kernel/release" "$out/"
	cp -L "$kernel/vmlinuz" "$out/"

	chosen_modules "$kernel" | while read -r module; do
		mkdir -p "$modules/$(dirname "$module")"
		plain_module "$kernel/modules/$module" "$modules/$module"
	done
	cp "$kernel"/modules/modules.builtin* "$kernel"/modules/modules.order "$modules/"
	mv "$modules/kernel/net/sunrpc/xprtrdma/rpcrdma.ko" "$out/rpcrdma-c.ko"

	make_disk "$out"
	make_early "$out" "$modules"
}

# The disk: no journal, since nothing on it outlives its guest, and room for what a run
# adds and a guest writes. It is sparse.
make_disk() {
	local root=$1/root
	mkdir "$root"
	cp -a "$(guest_path)/root/." "$root/"
	rm -rf "${root:?}"/dev/*
	cp -r "$1/modules/." "$root/"
	mke2fs -q -t ext4 -O ^has_journal -m 0 -d "$root" "$1/root.img" 2G
	rm -r "$root"
}

# The archive: bash, what it calls in tools/vm/guest/early, their libraries, and the
# modules for the disk in the order of their needs.
make_early() {
	local out=$1 modules=$2 root early tool library
	root=$(guest_path)/root early=$(mktemp -d)
	mkdir -p "$early/usr/bin" "$early/usr/lib" "$early/usr/lib64" "$early/usr/sbin" \
		"$early/dev" "$early/sys" "$early/disk" "$early/modules"
	ln -s usr/bin usr/lib usr/lib64 usr/sbin "$early/"
	for tool in /usr/bin/bash /usr/bin/mount /usr/bin/cp /usr/bin/rm /usr/sbin/insmod /usr/sbin/chroot; do
		cp -L "$root$tool" "$early$tool"
		chroot "$root" ldd "$tool" | grep -o '/[^ ]*'
	done | sort -u | while read -r library; do
		mkdir -p "$early$(dirname "$library")"
		cp -L "$root$library" "$early$library"
	done
	modules_of "$(kernel_path)" virtio_blk ext4 | cat -n | while read -r number module; do
		cp "$modules/$module" "$early/modules/$(printf %02d "$number")"
	done
	(cd "$early" && find . -print0 | cpio -0 --quiet -o -H newc) >"$out/early.cpio"
	rm -r "$early"
}

# The modules named in the lists, and those they need.
chosen_modules() {
	# shellcheck disable=SC2046 # a name has no blanks
	modules_of "$1" $(cd "$env_dir" && sed 's/#.*//' $(module_lists)) | sort -u
}

# modules_of KERNEL NAME...: these and those they need, by path, without suffix. What one
# needs comes before it; what is built in does not come at all.
modules_of() {
	local kernel=$1 root
	shift
	root=$(mktemp -d)
	mkdir -p "$root/lib/modules"
	ln -s "$(realpath "$kernel/modules")" "$root/lib/modules/$(cat "$kernel/release")"
	printf '%s\n' "$@" | xargs -n 1 \
		modprobe -d "$root" -S "$(cat "$kernel/release")" --show-depends >"$root/all"
	sed -n 's|^insmod .*/\(kernel/[^ ]*\.ko\).*|\1|p' "$root/all" | awk '!seen[$0]++'
	rm -r "$root"
}

# Decompressing in the guest costs more than the memory it saves.
plain_module() {
	if [ -f "$1" ]; then
		cp "$1" "$2"
	elif [ -f "$1.xz" ]; then
		xz -dc "$1.xz" >"$2"
	else
		zstd -qdc "$1.zst" >"$2"
	fi
}
