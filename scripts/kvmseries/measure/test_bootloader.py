"""Which entry of a boot menu is which kernel, and how it is booted for one time."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.measure import bootloader

UUID = "1c2d-44"
# As Debian's update-grub writes it.
GRUB = (
    f"""\
set default="${{next_entry}}"
if [ x"${{feature_menuentry_id}}" = xy ]; then
  menuentry_id_option="--id"
fi
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-{UUID}' {{
	linux	/boot/vmlinuz-6.1.0-1-arm64 root=UUID={UUID} ro  quiet
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-{UUID}' {{
"""
    + "".join(
        f"""\
	menuentry 'Debian GNU/Linux, with Linux {release}{" (recovery mode)" * recovery}' --class debian $menuentry_id_option \
'gnulinux-{release}-{"recovery" if recovery else "advanced"}-{UUID}' {{
		load_video
		if [ x$grub_platform = xxen ]; then insmod xzio; fi
		linux	/boot/vmlinuz-{release} root=UUID={UUID} ro
	}}
"""
        for release in (
            "6.1.0-1-arm64",
            "5.10.262-series",
            "5.10.262-base",
            "5.10.262-base2",
            "5.10.262-upto-30",
            "5.10.262-upto-3",
        )
        for recovery in (True, False)
    )
    + """\
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
	fwsetup
}
menuentry 'Linux 4.4' --class x {
	linux /vmlinuz-4.4
}
"""
)


@pytest.mark.parametrize("release", ["5.10.262-base", "5.10.262-series", "5.10.262-upto-3", "6.1.0-1-arm64"])
def test_the_entry_of_a_kernel_is_in_its_submenu_and_is_not_the_one_for_recovery(release):
    assert bootloader.grub_entry(GRUB, release) == f"gnulinux-advanced-{UUID}>gnulinux-{release}-advanced-{UUID}"


def test_an_entry_behind_the_submenu_is_not_in_it():
    assert bootloader.grub_entry(GRUB, "4.4") == "Linux 4.4"


@pytest.mark.parametrize("release", ["5.10.262", "5.10.262-bas", "5.10.26", "7.3.4-base"])
def test_a_kernel_that_is_not_in_the_menu(release):
    assert bootloader.grub_entry(GRUB, release) is None
    with pytest.raises(Fail, match=f"^the boot menu has no entry for {release}"):
        bootloader.once("grub-reboot", release, None)


def test_fedoras_entries_are_files():
    names = ["abc-6.1.fc41.x86_64.conf", "abc-5.10.262-base.conf", "abc-0-rescue.conf"]
    assert bootloader.bls_entry(names, "5.10.262-base") == "abc-5.10.262-base"
    assert bootloader.bls_entry(names, "5.10.262-series") is None


def ours(release):
    return release.endswith(("-base", "-series"))


def menu(*releases, default="0"):
    """GRUB as it is with the kernels `releases` alone, newest first."""
    head, _, rest = GRUB.partition("submenu ")
    blocks = [f"\tmenuentry {block}" for block in rest.split("\tmenuentry ")[1:]]
    kept = [next(block for block in blocks if f"gnulinux-{release}-advanced" in block) for release in releases]
    return f'   set default="{default}"\n{head}submenu {rest.partition("{")[0]}{{\n{"".join(kept)}}}\n'


def test_a_kernel_of_ours_that_is_newer_than_the_machines_own_is_the_menus_default():
    assert bootloader.usurped(menu("5.10.262-series", "5.10.262-base", "6.1.0-1-arm64"), ours) == (
        "5.10.262-series",
        f"gnulinux-advanced-{UUID}>gnulinux-6.1.0-1-arm64-advanced-{UUID}",
    )
    assert bootloader.usurped(menu("5.10.262-base"), ours) == ("5.10.262-base", None)


@pytest.mark.parametrize("default", ["0", "${saved_entry}", "gnulinux-6.1.0-1-arm64"])
def test_a_default_that_is_the_machines_own_kernel_or_was_chosen_stays(default):
    found = bootloader.usurped(menu("6.1.0-1-arm64", "5.10.262-series"), ours)
    assert found is None and bootloader.usurped(menu("5.10.262-series", default="x"), ours) is None
    kernels = ("5.10.262-series", "6.1.0-1-arm64")
    assert (bootloader.usurped(menu(*kernels, default=default), ours) is None) == (default != "0")


def test_a_menu_without_kernels():
    assert bootloader.usurped("", ours) is None


def test_the_command_is_quoted():
    assert bootloader.once("grub-reboot", "x", "a>b c").prepare == "grub-reboot 'a>b c'"
    assert "kexec -l /boot/vmlinuz-$r" in bootloader.once("kexec", "5.10.262-base", None).prepare


def test_the_way_that_a_machine_has():
    assert bootloader.choose(["tar", "kexec", "grub-reboot"]) == "grub-reboot"
    assert bootloader.choose(["tar", "kexec", "grub-reboot"], "kexec") == "kexec"
    assert bootloader.choose(["grub2-reboot"], "grub") == "grub2-reboot"
    with pytest.raises(Fail, match="no grub-reboot or kexec on it: install the package kexec-tools"):
        bootloader.choose(["tar"])
    with pytest.raises(Fail, match="there is no kexec on it"):
        bootloader.choose(["grub-reboot"], "kexec")
