# SPDX-License-Identifier: GPL-2.0
# The part of Makefile that runs in the tree's directory of KVM selftests, with the tree's rules for its library, and its
# flags.
include Makefile

# What a test is for, and what the tree's headers must have for it; a test that is not named here is for all.
ONLY_arm64 := device_slot_test dirty_block_test dirty_hold_test dirty_mask_test dirty_return_test gigantic_page_test \
	nested_destroy_test stage2_race_test tlb_refill_test vm_killed_test
ONLY_x86_64 := invlpg_test
NEEDS_dirty_block_test := read_stat_data
NEEDS_dirty_hold_test := timer_get_cntct
NEEDS_dirty_mask_test := read_stat_data
NEEDS_gigantic_page_test := VM_MEM_SRC_ANONYMOUS_HUGETLB_1GB
NEEDS_nested_destroy_test := kvm_get_default_vcpu_target KVM_CAP_ARM_EL2
NEEDS_tlb_refill_test := virt_get_pte_hva
# What lib/compat.h has to know of the library: what its headers say, which there are, and which structures.
FEATURES := gva_t timespec_elapsed atoi_positive bitmap_zalloc vm_set_user_memory_region vgic_v3_supported \
	vgic_its_setup kvm_supports_vgic_v3 TEST_ASSERT_EQ __TEST_REQUIRE read_stat_data vcpu_get_stat pin_self_to_any_cpu \
	virt_get_pte_hva_at_level
HEADERS_OF := ucall_common.h guest_modes.h lru_gen_util.h
STRUCTURES := kvm_vcpu kvm_mmu

headers := include $(LINUX_TOOL_INCLUDE) $(INSTALL_HDR_PATH)/include/asm $(INSTALL_HDR_PATH)/include/linux
has = $(shell grep -rqsw --exclude=compat.h -e '$(1)' $(headers) && echo yes)
found := $(foreach name,$(FEATURES),$(if $(call has,$(name)),$(name)))
found += $(foreach name,$(HEADERS_OF),$(if $(wildcard include/$(name)),$(name)))
# Or lib/lru_gen_util.h is used, if the kernel has MGLRU.
found += $(if $(wildcard ../../../../Documentation/admin-guide/mm/multigen_lru.rst),lru_gen_util.h)
found += $(foreach name,$(STRUCTURES),$(if $(call has,struct $(name) {),$(name)))
have := $(addprefix -DHAVE_,$(shell echo $(found) | tr a-z. A-Z_))
our_arch := $(patsubst x86,x86_64,$(ARCH))
our_flags := -Wall $(if $(findstring _GNU_SOURCE,$(CFLAGS)),,-D_GNU_SOURCE=) $(have) -I$(OURS)/lib

every := $(notdir $(basename $(wildcard $(OURS)/tests/*.c)))
plain := hold_vm lockphase spread
other := $(filter $(foreach arch,$(filter-out $(our_arch),arm64 x86_64),$(ONLY_$(arch))),$(every))
lacking := $(foreach test,$(filter-out $(other) $(plain),$(every)),\
	$(if $(strip $(foreach need,$(NEEDS_$(test)),$(if $(call has,$(need)),,no))),$(test)))
built := $(addprefix $(O)/,$(filter-out $(other) $(lacking) $(plain),$(every)))

our_lib := $(patsubst $(OURS)/lib/%.c,$(OUTPUT)/ours/%.o,$(wildcard $(OURS)/lib/*.c))
library := $(OUTPUT)/ours/libkvm.a

our-tests: $(built) $(addprefix $(O)/,$(filter-out hold_vm,$(plain)))
	@$(foreach test,$(other),echo "$(test) is left out: it is not for $(our_arch)";)
	@$(foreach test,$(lacking),echo "$(test) is left out: this tree has no $(foreach need,$(NEEDS_$(test)),$(if \
		$(call has,$(need)),,$(need)))";)

$(library): $(LIBKVM_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) crs $@ $(filter %.o,$^)

$(our_lib): $(OUTPUT)/ours/%.o: $(OURS)/lib/%.c $(wildcard $(OURS)/lib/*.h) | $(library)
	$(CC) $(our_flags) $(CFLAGS) $(CPPFLAGS) -c $< -o $@

$(built): $(O)/%: $(OURS)/tests/%.c $(our_lib) $(library) $(wildcard $(OURS)/lib/*.h)
	$(CC) $(our_flags) $(CFLAGS) $(CPPFLAGS) -MMD -MF $(OUTPUT)/ours/$(@F).d $(LDFLAGS) $< $(our_lib) $(library) $(LDLIBS) -o $@

$(addprefix $(O)/,$(plain)): $(O)/%: $(OURS)/guest/%.c
	$(CC) -O2 -static -Wall -Wextra $< -o $@

# For scripts/kvmseries/source/programs.py
our-features:
	@echo $(have)

.PHONY: our-tests our-features
