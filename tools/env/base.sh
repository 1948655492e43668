# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Recipe for what a virtual machine boots: a disk with the guest root and the
# kernel's modules, and an initramfs with no more than is needed to mount that disk.
# The C rpcrdma.ko is kept beside them, because each run chooses its module.
#
# The cache key covers code, not comments (recipe in cache.sh). A change of code
# makes every checkout rebuild this part.

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

# The disk has no journal, because each guest discards its changes. It is sparse, and
# large enough for the files that a run adds and a guest writes.
make_disk() {
	local root=$1/root
	mkdir "$root"
	cp -a "$(guest_path)/root/." "$root/"
	rm -rf "${root:?}"/dev/*
	cp -r "$1/modules/." "$root/"
	mke2fs -q -t ext4 -O ^has_journal -m 0 -d "$root" "$1/root.img" 2G
	rm -r "$root"
}

# The initramfs: bash, the programs that tools/vm/guest/early runs, their libraries, and
# the modules that the disk needs, numbered in dependency order.
make_early() {
	local out=$1 modules=$2 root early tool library
	root=$(guest_path)/root early=$(mktemp -d)
	mkdir -p "$early/usr/bin" "$early/usr/lib" "$early/usr/lib64" "$early/usr/sbin" \
		"$early/dev" "$early/sys" "$early/disk" "$early/modules"
	ln -s usr/bin usr/lib usr/lib64 usr/sbin "$early/"
	for tool in /usr/bin/bash /usr/bin/mount /usr/bin/cp /usr/bin/rm /usr/sbin/insmod /usr/sbin/chroot; do
		cp -L "$root$tool" "$early$tool"
		libraries_of "$root" "$tool"
	done | sort -u | while read -r library; do
		mkdir -p "$early$(dirname "$library")"
		cp -L "$root$library" "$early$library"
	done
	modules_of "$(kernel_path)" virtio_pci virtio_blk ext4 | cat -n | while read -r number module; do
		cp "$modules/$module" "$early/modules/$(printf %02d "$number")"
	done
	(cd "$early" && find . -print0 | cpio -0 --quiet -o -H newc) >"$out/early.cpio"
	rm -r "$early"
}

# libraries_of ROOT PROGRAM: prints the paths of the libraries that PROGRAM needs, and of its
# loader. Reads the files, because programs of another architecture cannot run here.
libraries_of() {
	local root=$1 name library
	{
		readelf --dynamic --wide "$root$2" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
		readelf --program-headers --wide "$root$2" | sed -n 's/.*interpreter: \(.*\)\]/\1/p'
	} | while read -r name; do
		case $name in
		/*) echo "$name" ;;
		*) library=$(cd "$root" && echo usr/lib/*-linux-gnu/"$name")
			echo "/$library"
			libraries_of "$root" "/$library" ;;
		esac
	done
}

# The modules in the lists, and their dependencies.
chosen_modules() {
	# shellcheck disable=SC2046 # a name has no blanks
	modules_of "$1" $(cd "$env_dir" && sed 's/#.*//' $(module_lists)) | sort -u
}

# modules_of KERNEL NAME...: prints the paths of these modules and their dependencies,
# without compression suffix. Dependencies come first; built-in modules are left out, and so are
# those that SOURCE does not have.
modules_of() {
	local kernel=$1 root module
	shift
	root=$(mktemp -d)
	mkdir -p "$root/lib/modules"
	ln -s "$(realpath "$kernel/modules")" "$root/lib/modules/$(cat "$kernel/release")"
	for module; do
		modprobe -d "$root" -S "$(cat "$kernel/release")" --show-depends "$module" ||
			[ -n "${SOURCE-}" ] || exit 1
	done >"$root/all"
	sed -n 's|^insmod .*/\(kernel/[^ ]*\.ko\).*|\1|p' "$root/all" | awk '!seen[$0]++'
	rm -r "$root"
}

# Copies a module uncompressed: decompression in the guest costs more than the memory
# it saves.
plain_module() {
	if [ -f "$1" ]; then
		cp "$1" "$2"
	elif [ -f "$1.xz" ]; then
		xz -dc "$1.xz" >"$2"
	else
		zstd -qdc "$1.zst" >"$2"
	fi
}
