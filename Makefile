# SPDX-License-Identifier: GPL-2.0
#
# What a person types. How the module is built is in Kbuild.

.DEFAULT_GOAL := all
.PHONY: copy all install demo test test-debug test-hundred interop check bench probe
.PHONY: docs shell clean help environment kernel-tree

# KDIR: a prepared kernel tree with CONFIG_RUST=y. Without it the environment
# of tools/env provides the kernel, the compilers and the virtual machines.
ifdef KDIR
kbuild = $(MAKE) -C $(abspath $(KDIR)) M=$(CURDIR)
ready  = kernel-tree
else
kbuild = tools/env/enter --src . $(make_in_tree) -C /obj M=/src$(apart)
make_in_tree = make $(if $(filter debug,$(KERNEL)),LLVM=1) $(if $(V),V=$(V),-s) -j$(shell nproc)
ready  = environment
# For another kernel than the stock one a copy is built, so that both are there.
ifneq ($(filter-out stock,$(KERNEL)),)
apart  = /out/$(KERNEL)
ready += copy
endif
endif

all: $(ready) ## build rpcrdma.ko
	$(kbuild) modules

copy: environment
	@mkdir -p out/$(KERNEL)
	@tools/env/enter --src . rsync -a --delete --exclude='*.o' --exclude='.*' \
		--exclude='generated.rs' Kbuild include rust out/$(KERNEL)/

install: ## install the module under updates/, where modprobe finds it first
	tools/install

demo: ## copy a real tree over NFS/RDMA in a virtual machine, and compare
	tools/demo/run

interop: ## this module and the C module against each other, in two machines
	tools/interop/run

test: ## host tests, checks and selftests; ends with "N passed, N failed"
	tools/test/run

test-debug: ## selftests and probe under KASAN, lockdep and kmemleak; a day or more without KVM
	tools/test/debug

test-hundred: ## reconnects, removals and unloads, a hundred times each; hours
	tools/test/hundred

check: ## formatting, lints, and the rules of the house
	tools/check/run

bench: ## cost in instructions against the C module
	tools/bench/run

probe: ## hostile peers, case by case and by requirement
	tools/probe/run

docs: ## the documents as HTML, in out/docs
	tools/docs

shell: ## a console in a virtual machine with the module
	@[ -n "$(KDIR)" ] || $(MAKE) --no-print-directory all
	tools/vm/run --time 86400 --shell

clean: ## remove what the build made, and all results in out/
	@if [ -n "$(KDIR)" ] || { tools/env/make found && [ -d .$(apart) ]; }; then $(kbuild) clean; fi
	rm -rf tools/host/target tools/fuzz/target out

# What the kernel's build would say of these is hard to read.
kernel-tree:
	@[ -z "$(word 2,$(CURDIR))" ] || { \
		echo 'error: the path "$(CURDIR)" has a blank' >&2; \
		echo '    next: move this tree: the build of the kernel takes no such path' >&2; exit 1; }
	@[ -f "$(KDIR)/rust/libkernel.rmeta" ] || { \
		echo 'error: KDIR=$(KDIR) has no rust/libkernel.rmeta' >&2; \
		echo '    next: name a tree in which a kernel with CONFIG_RUST=y was built;' \
			'for the kernel of Debian forky, make without KDIR' >&2; exit 1; }

environment: ## make the build environment, or find it made
	@tools/env/make

help: ## this list
	@echo 'Verbs:'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s%s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Settings:'
	@echo '  KDIR=<tree>   build for this kernel tree, without the environment'
	@echo '  KERNEL=built  build the kernel too, where the stock one does not suit'
	@echo '  KERNEL=debug  build one that watches memory, locks, leaks and mappings'
	@echo '  VM_ACCEL=kvm  run virtual machines under KVM (auto: if it works)'
	@echo '  V=1           show the commands of the build'
