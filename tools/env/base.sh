# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What a virtual machine boots: the guest root and the kernel's modules as one
# archive. The C rpcrdma is kept beside it; each run says which one it wants.

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

	(cd "$(guest_path)/root" && find . -xdev -path ./dev/\* -prune -o -print0 |
		cpio -0 --quiet -o -H newc) >"$out/base.cpio"
	(cd "$out/modules" && find ./usr/lib/modules -print0 | cpio -0 --quiet -o -H newc) >>"$out/base.cpio"
}

# The modules named in the lists, and those they need, by path, without suffix.
chosen_modules() {
	local root
	root=$(mktemp -d)
	mkdir -p "$root/lib/modules"
	ln -s "$(realpath "$1/modules")" "$root/lib/modules/$(cat "$1/release")"
	# shellcheck disable=SC2046 # a name has no blanks
	(cd "$env_dir" && sed 's/#.*//' $(module_lists)) | xargs -n 1 \
		modprobe -d "$root" -S "$(cat "$1/release")" --show-depends >"$root/all"
	sed -n 's|^insmod .*/\(kernel/[^ ]*\.ko\).*|\1|p' "$root/all" | sort -u
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
