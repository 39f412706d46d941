//! Memory of the traced program that is not resident: when it is faulted in, and how.
//!
//! A page fault in a BPF program can take arbitrarily long if it is served by a process with a userfaultfd, or by the server of a FUSE or
//! network file system. Until it is served, RCU tasks trace of the whole kernel waits, and with it every tracer that attaches or detaches.
//! So reads do not fault. If a read fails, and no record is reserved, a function of the program may touch the page:
//!
//! 1. The mapping must be anonymous, or of a regular file of a local file system on a block device ([`FILE_SYSTEMS`], [`DEVICES`]).
//!    It must not be registered with a userfaultfd, nor be memory of a device. On an overlay, the kernel maps the file below
//!    (`ovl_mmap`), which is the one that is checked.
//! 2. The mapping must not change between the check and the touch. So the memory must have a single user (`mm_users`:
//!    a process with one thread, while nobody reads its `/proc/PID/maps`), or the process must be trusted: it has
//!    `CAP_SYS_ADMIN` in the initial user namespace, or runs as the user who records.
//!
//! The helper that finds the mapping (`bpf_find_vma`) does not wait for `mmap_lock`. While another thread changes the mappings of the process,
//! the program tries again for a bounded time. Waiting for the lock could take arbitrarily long: its holder may wait for a file server (`nfs_file_mmap`).
//!
//! The functions are global ones, which the verifier checks once for a program, not at each of its calls.
//!
//! A userfaultfd can also be registered from another process. If unprivileged users may have one that handles faults of the kernel
//! (`vm.unprivileged_userfaultfd`, access to `/dev/userfaultfd`), only memory of trusted processes is touched.

use std::fs;
use std::os::unix::fs::MetadataExt;

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::insn::{Assembler, FunctionKind, Helper, If, Label, Op, Reg, Width};
use usdtrec_kernel::bpf::preemption::{self, Preemption};

use crate::engine::options::NonResident;

/// When the programs of a session bring memory in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Touch {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// After a check of the mapping and the process.
    Look(Look),
}

/// Parameters of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) members: Members,
    /// The user id of the recorder.
    pub(super) user: u32,
    /// Whether memory with one user (`mm_users`) cannot get a userfaultfd from another process.
    pub(super) single_user: bool,
}

/// Offsets of members of the kernel's structures, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Members {
    /// `task_struct`.
    pub(super) mm: u32,
    pub(super) cred: u32,
    /// `mm_struct`.
    pub(super) mm_users: u32,
    /// `cred`.
    pub(super) euid: u32,
    pub(super) cap_effective: u32,
    pub(super) user_ns: u32,
    /// `user_namespace`.
    pub(super) level: u32,
    /// `vm_area_struct`.
    pub(super) vm_flags: u32,
    pub(super) vm_file: u32,
    pub(super) vm_ops: u32,
    /// `None` in a kernel without userfaultfd.
    pub(super) userfaultfd: Option<u32>,
    /// `file`.
    pub(super) f_inode: u32,
    /// `inode`.
    pub(super) i_mode: u32,
    pub(super) i_sb: u32,
    /// `super_block`.
    pub(super) s_magic: u32,
    pub(super) s_bdev: u32,
    /// `block_device`.
    pub(super) bd_disk: u32,
    /// `gendisk`.
    pub(super) disk_name: u32,
}

impl Members {
    /// `None` if this kernel does not have one of the members.
    fn from_btf(btf: &Btf) -> Option<Self> {
        let one = |structure, member| btf.member(structure, &[member]);
        Some(Self {
            mm: one("task_struct", "mm")?,
            cred: one("task_struct", "cred")?,
            mm_users: one("mm_struct", "mm_users")?,
            euid: one("cred", "euid")?,
            cap_effective: one("cred", "cap_effective")?,
            user_ns: one("cred", "user_ns")?,
            level: one("user_namespace", "level")?,
            vm_flags: one("vm_area_struct", "vm_flags")?,
            vm_file: one("vm_area_struct", "vm_file")?,
            vm_ops: one("vm_area_struct", "vm_ops")?,
            userfaultfd: btf.member("vm_area_struct", &["vm_userfaultfd_ctx", "ctx"]),
            f_inode: one("file", "f_inode")?,
            i_mode: one("inode", "i_mode")?,
            i_sb: one("inode", "i_sb")?,
            s_magic: one("super_block", "s_magic")?,
            s_bdev: one("super_block", "s_bdev")?,
            bd_disk: one("block_device", "bd_disk")?,
            disk_name: one("gendisk", "disk_name")?,
        })
    }
}

impl Touch {
    /// The setting for a session; without the check if the kernel's structures are unknown.
    pub(super) fn new(wanted: NonResident, btf: Option<&Btf>) -> Self {
        match wanted {
            NonResident::Never => Self::Never,
            NonResident::Always => Self::Always,
            NonResident::Auto => btf
                .and_then(Members::from_btf)
                .map_or(Self::Never, |members| {
                    Self::Look(Look {
                        members,
                        user: rustix::process::geteuid().as_raw(),
                        single_user: !userfaultfd_for_all(),
                    })
                }),
        }
    }
}

/// Whether unprivileged users may have a userfaultfd that handles faults of the kernel (Documentation/admin-guide/mm/userfaultfd.rst).
fn userfaultfd_for_all() -> bool {
    const OTHERS: u32 = 0o077;
    let allowed = match fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd") {
        Ok(value) => value.trim() != "0",
        // Either there is no userfaultfd, or the kernel is older than 5.2 and allows it to every user; then it has no `bpf_find_vma`,
        // either.
        Err(_) => false,
    };
    let device = fs::metadata("/dev/userfaultfd");
    allowed || device.is_ok_and(|device| device.mode() & OTHERS != 0 || device.uid() != 0)
}

/// Magic numbers of local file systems (`include/uapi/linux/magic.h` and the sources of the file systems).
const FILE_SYSTEMS: [u32; 15] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x2fc1_2fc1, // zfs
    0x0102_1994, // tmpfs, shared memory
    0x8584_58f6, // ramfs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x9660,      // iso9660
    0x1501_3346, // udf
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs3
];

/// Prefixes of the names of local block devices. Others, such as `loop` and `nbd`, may wait for a process or a network.
const DEVICES: [&str; 14] = [
    "sd", "vd", "xvd", "hd", "sr", "nvme", "mmcblk", "md", "dm-", "pmem", "dasd", "zram", "bcache",
    "zd",
];

/// `VM_READ`.
const READ: i32 = 0x1;
/// Flags of mappings that are not touched: `VM_UFFD_MISSING`, `VM_UFFD_WP`, `VM_PFNMAP`, `VM_IO`, `VM_HUGETLB`, `VM_MIXEDMAP`.
const UNTOUCHED: i32 = 0x200 | 0x1000 | 0x400 | 0x4000 | 0x40_0000 | 0x1000_0000;
/// `CAP_SYS_ADMIN`.
const SYS_ADMIN: i32 = 21;
/// `S_IFMT` and `S_IFREG`.
const FILE_KIND: i32 = 0xf000;
const REGULAR_FILE: i32 = 0x8000;

/// Results of [`Functions::touch`].
const TOUCHED: i32 = 0;
/// No readable memory is mapped there.
const NOT_MAPPED: i32 = 1;
/// The memory was not touched.
const LEFT_ALONE: i32 = 2;

/// How often a mapping is looked for while another thread holds its lock for writing; together some tenths of a millisecond.
pub(super) const TRIES: i64 = 4096;

/// Stack slots of the function that checks, 8 bytes each: what `bpf_find_vma` returned and where it looks, and the results of its callback.
const RESULT: i16 = -96;
const ADDRESS: i16 = -88;
const FLAGS: i16 = -80;
const FILE: i16 = -72;
const OPERATIONS: i16 = -64;
const USERFAULTFD: i16 = -56;
const MODE: i16 = -48;
const MAGIC: i16 = -40;
const DEVICE: i16 = -32;
const DISK: i16 = -24;
/// A word that was read, and the byte that is touched.
const WORD: i16 = -16;
const BYTE: i16 = -8;
/// Offset of a slot from the address that the callback gets.
const fn found(slot: i16) -> i16 {
    slot - FLAGS
}

/// The functions at the end of a program that bring memory in.
pub(super) struct Functions<'a> {
    pub(super) asm: &'a mut Assembler,
    pub(super) touch: Touch,
    pub(super) preemption: Option<Preemption>,
}

impl Functions<'_> {
    /// `bring_in(address, bytes)`: touches the pages of at most 4098 bytes. Returns 1 if an absent page is not mapped, else 0.
    pub(super) fn write(&mut self, bring_in: Label) {
        let touch = self.asm.label();
        let (left_alone, end) = (self.asm.label(), self.asm.label());
        self.asm
            .function(bring_in, FunctionKind::Global { arguments: 2 });
        let asm = &mut *self.asm;
        // r6 = address; r7 = bytes; r8 = 0;
        asm.copy(Reg::R6, Reg::R1);
        asm.copy(Reg::R7, Reg::R2);
        asm.set(Reg::R8, 0);
        // The first, the middle and the last byte are in all pages of the range.
        for point in 0..3 {
            let next = asm.label();
            match point {
                0 => asm.set(Reg::R1, 0),
                1 => {
                    // if (bytes <= 2048) goto next; r1 = 2048;
                    asm.jump_if(If::AtMost, Reg::R7, 2048, next);
                    asm.set(Reg::R1, 2048);
                }
                _ => {
                    // if (bytes <= 1) goto next; r1 = bytes - 1;
                    asm.jump_if(If::AtMost, Reg::R7, 1, next);
                    asm.copy(Reg::R1, Reg::R7);
                    asm.op_value(Op::Add, Reg::R1, -1);
                }
            }
            // r0 = touch(address + r1); if (r0 == TOUCHED) goto next; if (r0 == LEFT_ALONE) goto left_alone; r8 = 1;
            asm.op(Op::Add, Reg::R1, Reg::R6);
            asm.call_function(touch);
            asm.jump_if(If::Equal, Reg::R0, TOUCHED, next);
            asm.jump_if(If::Equal, Reg::R0, LEFT_ALONE, left_alone);
            asm.set(Reg::R8, 1);
            asm.place(next);
        }
        // return r8; left_alone: return 0;
        asm.copy(Reg::R0, Reg::R8);
        asm.jump(end);
        asm.place(left_alone);
        asm.set(Reg::R0, 0);
        asm.place(end);
        asm.exit();
        self.asm
            .function(touch, FunctionKind::Global { arguments: 1 });
        self.touch();
    }

    /// `touch(address)`: reads a byte, so that its page becomes resident.
    fn touch(&mut self) {
        let (look, search) = (self.touch, self.asm.label());
        let (left_alone, not_mapped) = (self.asm.label(), self.asm.label());
        // r6 = address;
        self.asm.copy(Reg::R6, Reg::R1);
        if let Touch::Look(look) = look {
            let none_mapped = self.asm.label();
            let sure = self.asm.label();
            // bpf_preempt_disable(); process(left_alone); mapping(left_alone, none_mapped); goto sure;
            preemption::disable(self.asm, self.preemption);
            self.process(look, left_alone);
            self.mapping(search, left_alone, none_mapped);
            self.asm.jump(sure);
            // none_mapped: bpf_preempt_enable(); goto not_mapped; sure: bpf_preempt_enable();
            self.asm.place(none_mapped);
            preemption::enable(self.asm, self.preemption);
            self.asm.jump(not_mapped);
            self.asm.place(sure);
            preemption::enable(self.asm, self.preemption);
        }
        let asm = &mut *self.asm;
        // if (bpf_copy_from_user(&BYTE, 1, address)) goto not_mapped; return TOUCHED;
        asm.address(Reg::R1, Reg::R10, BYTE.into());
        asm.set(Reg::R2, 1);
        asm.copy(Reg::R3, Reg::R6);
        asm.call(Helper::CopyFromUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, not_mapped);
        asm.exit_with(TOUCHED);
        // not_mapped: return NOT_MAPPED;
        asm.place(not_mapped);
        asm.exit_with(NOT_MAPPED);
        if let Touch::Look(look) = look {
            // left_alone: bpf_preempt_enable(); return LEFT_ALONE;
            asm.place(left_alone);
            preemption::enable(asm, self.preemption);
            asm.exit_with(LEFT_ALONE);
            asm.function(search, FunctionKind::Static);
            let mapping = asm.label();
            write_search(asm, mapping);
            asm.function(mapping, FunctionKind::Static);
            MappingCallback { asm, look }.write();
        }
    }

    /// Continues if no other thread can change the mappings meanwhile, or if the process is trusted.
    fn process(&mut self, look: Look, left_alone: Label) {
        let members = look.members;
        let sure = self.asm.label();
        // task = bpf_get_current_task();
        self.asm.call(Helper::CurrentTask);
        self.asm.copy(Reg::R7, Reg::R0);
        if look.single_user {
            // if (task->mm->mm_users == 1) goto sure;
            self.read(Reg::R7, members.mm, 8);
            self.asm.copy(Reg::R8, Reg::R1);
            self.read(Reg::R8, members.mm_users, 4);
            self.asm.jump_if(If::Equal, Reg::R1, 1, sure);
        }
        // cred = task->cred; if (!cred) goto left_alone;
        self.read(Reg::R7, members.cred, 8);
        self.asm.copy(Reg::R8, Reg::R1);
        self.asm.jump_if(If::Equal, Reg::R8, 0, left_alone);
        // if (!cred->user_ns || cred->user_ns->level != 0) goto left_alone;
        self.read(Reg::R8, members.user_ns, 8);
        self.asm.copy(Reg::R9, Reg::R1);
        self.asm.jump_if(If::Equal, Reg::R9, 0, left_alone);
        self.read(Reg::R9, members.level, 4);
        self.asm.jump_if(If::NotEqual, Reg::R1, 0, left_alone);
        // if (cred->cap_effective >> SYS_ADMIN & 1) goto sure;
        self.read(Reg::R8, members.cap_effective, 8);
        self.asm.op_value(Op::ShiftRight, Reg::R1, SYS_ADMIN);
        self.asm.op_value(Op::And, Reg::R1, 1);
        self.asm.jump_if(If::NotEqual, Reg::R1, 0, sure);
        if look.user == 0 {
            // A process of root without it is in a container, and not trusted.
            self.asm.jump(left_alone);
        } else {
            // if (cred->euid != look.user) goto left_alone;
            self.read(Reg::R8, members.euid, 4);
            let asm = &mut *self.asm;
            asm.set(Reg::R2, look.user.into());
            asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, left_alone);
        }
        self.asm.place(sure);
    }

    /// `R1` = `size` bytes of kernel memory at `from + offset`; 0 if they cannot be read.
    fn read(&mut self, from: Reg, offset: u32, size: u8) {
        let asm = &mut *self.asm;
        // WORD = 0; bpf_probe_read_kernel(&WORD, size, from + offset); r1 = WORD;
        asm.store_value(Width::Double, Reg::R10, WORD, 0);
        asm.address(Reg::R1, Reg::R10, WORD.into());
        asm.set(Reg::R2, size.into());
        asm.address(Reg::R3, from, offset.cast_signed());
        asm.call(Helper::ReadKernel);
        asm.load(Width::Double, Reg::R1, Reg::R10, WORD);
    }

    /// `R0` = what `bpf_find_vma` returns for the address in `R6`.
    fn find(&mut self, search: Label) {
        let asm = &mut *self.asm;
        // ADDRESS = r6; RESULT = -EBUSY; bpf_loop(TRIES, search, &FLAGS, 0); r0 = RESULT;
        asm.store(Width::Double, Reg::R10, ADDRESS, Reg::R6);
        asm.store_value(Width::Double, Reg::R10, RESULT, -libc::EBUSY);
        asm.set(Reg::R1, TRIES);
        asm.set_function(Reg::R2, search);
        asm.address(Reg::R3, Reg::R10, FLAGS.into());
        asm.set(Reg::R4, 0);
        asm.call(Helper::Loop);
        asm.load(Width::Double, Reg::R0, Reg::R10, RESULT);
    }

    /// Continues if a page fault of the mapping at the address in `R6` cannot take arbitrarily long.
    fn mapping(&mut self, search: Label, left_alone: Label, not_mapped: Label) {
        let asm = &mut *self.asm;
        let (sure, file, device) = (asm.label(), asm.label(), asm.label());
        // FLAGS = FILE = OPERATIONS = USERFAULTFD = MODE = MAGIC = DEVICE = DISK = 0;
        for slot in (FLAGS..WORD).step_by(8) {
            asm.store_value(Width::Double, Reg::R10, slot, 0);
        }
        // r0 = find(r6); if (r0 == -ENOENT) goto not_mapped; if (r0) goto left_alone;
        self.find(search);
        let asm = &mut *self.asm;
        asm.copy(Reg::R1, Reg::R0);
        asm.op_value(Op::Add, Reg::R1, libc::ENOENT);
        asm.jump_if(If::Equal, Reg::R1, 0, not_mapped);
        asm.jump_if(If::NotEqual, Reg::R0, 0, left_alone);
        // if (!(FLAGS & READ)) goto not_mapped; if (FLAGS & UNTOUCHED) goto left_alone;
        asm.load(Width::Double, Reg::R1, Reg::R10, FLAGS);
        asm.copy(Reg::R2, Reg::R1);
        asm.op_value(Op::And, Reg::R2, READ);
        asm.jump_if(If::Equal, Reg::R2, 0, not_mapped);
        asm.op_value(Op::And, Reg::R1, UNTOUCHED);
        asm.jump_if(If::NotEqual, Reg::R1, 0, left_alone);
        // if (USERFAULTFD) goto left_alone; if (FILE) goto file; if (!OPERATIONS) goto sure; goto left_alone;
        asm.load(Width::Double, Reg::R1, Reg::R10, USERFAULTFD);
        asm.jump_if(If::NotEqual, Reg::R1, 0, left_alone);
        asm.load(Width::Double, Reg::R1, Reg::R10, FILE);
        asm.jump_if(If::NotEqual, Reg::R1, 0, file);
        asm.load(Width::Double, Reg::R1, Reg::R10, OPERATIONS);
        asm.jump_if(If::Equal, Reg::R1, 0, sure);
        asm.jump(left_alone);
        // file: if ((MODE & FILE_KIND) != REGULAR_FILE) goto left_alone;
        asm.place(file);
        asm.load(Width::Double, Reg::R1, Reg::R10, MODE);
        asm.op_value(Op::And, Reg::R1, FILE_KIND);
        asm.jump_if(If::NotEqual, Reg::R1, REGULAR_FILE, left_alone);
        // for each magic of FILE_SYSTEMS: if (MAGIC == magic) goto device; goto left_alone;
        asm.load(Width::Double, Reg::R1, Reg::R10, MAGIC);
        for magic in FILE_SYSTEMS {
            asm.set(Reg::R2, magic.into());
            asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, device);
        }
        asm.jump(left_alone);
        // device: if (!DEVICE) goto sure;
        asm.place(device);
        asm.load(Width::Double, Reg::R1, Reg::R10, DEVICE);
        asm.jump_if(If::Equal, Reg::R1, 0, sure);
        // for each name of DEVICES: if (!memcmp(&DISK, name, strlen(name))) goto sure; goto left_alone;
        for name in DEVICES {
            let mut word = [0; 8];
            word[..name.len()].copy_from_slice(name.as_bytes());
            let beyond = 64 - 8 * name.len() as i32;
            asm.load(Width::Double, Reg::R1, Reg::R10, DISK);
            asm.extend(Reg::R1, beyond, false);
            asm.set(Reg::R2, i64::from_le_bytes(word));
            asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, sure);
        }
        asm.jump(left_alone);
        asm.place(sure);
    }
}

/// `search(index, found)`: calls `bpf_find_vma`; 1, which ends the loop, unless another thread holds `mmap_lock` for writing.
fn write_search(asm: &mut Assembler, mapping: Label) {
    let again = asm.label();
    // found = r2; found->RESULT = bpf_find_vma(bpf_get_current_task_btf(), found->ADDRESS, mapping, found, 0);
    asm.copy(Reg::R6, Reg::R2);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R1, Reg::R0);
    asm.load(Width::Double, Reg::R2, Reg::R6, found(ADDRESS));
    asm.set_function(Reg::R3, mapping);
    asm.copy(Reg::R4, Reg::R6);
    asm.set(Reg::R5, 0);
    asm.call(Helper::FindVma);
    asm.store(Width::Double, Reg::R6, found(RESULT), Reg::R0);
    // return found->RESULT != -EBUSY;
    asm.op_value(Op::Add, Reg::R0, libc::EBUSY);
    asm.copy(Reg::R1, Reg::R0);
    asm.set(Reg::R0, 0);
    asm.jump_if(If::Equal, Reg::R1, 0, again);
    asm.set(Reg::R0, 1);
    asm.place(again);
    asm.exit();
}

/// `callback(task, mapping, found)`: copies the members that decide to the slots. The kernel holds `mmap_lock` meanwhile.
struct MappingCallback<'a> {
    asm: &'a mut Assembler,
    look: Look,
}

impl MappingCallback<'_> {
    fn write(&mut self) {
        let members = self.look.members;
        let end = self.asm.label();
        // vma = r2; found = r3; found->FLAGS = vma->vm_flags; found->FILE = vma->vm_file;
        self.asm.copy(Reg::R6, Reg::R2);
        self.asm.copy(Reg::R7, Reg::R3);
        self.copy(members.vm_flags, 8, FLAGS);
        self.copy(members.vm_file, 8, FILE);
        // found->OPERATIONS = vma->vm_ops; found->USERFAULTFD = vma->vm_userfaultfd_ctx.ctx;
        self.copy(members.vm_ops, 8, OPERATIONS);
        if let Some(member) = members.userfaultfd {
            self.copy(member, 8, USERFAULTFD);
        }
        // if (!found->FILE) goto end; inode = found->FILE->f_inode; if (!inode) goto end;
        self.follow(FILE, end);
        self.copy(members.f_inode, 8, MODE);
        self.follow(MODE, end);
        // found->MODE = inode->i_mode; found->MAGIC = inode->i_sb; if (!inode->i_sb) goto end;
        self.asm.store_value(Width::Double, Reg::R7, found(MODE), 0);
        self.copy(members.i_mode, 2, MODE);
        self.copy(members.i_sb, 8, MAGIC);
        self.follow(MAGIC, end);
        // found->MAGIC = inode->i_sb->s_magic; found->DEVICE = inode->i_sb->s_bdev; if (!found->DEVICE) goto end;
        self.copy(members.s_magic, 8, MAGIC);
        self.copy(members.s_bdev, 8, DEVICE);
        self.follow(DEVICE, end);
        // found->DISK = found->DEVICE->bd_disk; if (!found->DISK) goto end; memcpy(&found->DISK, disk->disk_name, 8);
        self.copy(members.bd_disk, 8, DISK);
        self.follow(DISK, end);
        self.copy(members.disk_name, 8, DISK);
        self.asm.place(end);
        self.asm.exit_with(0);
    }

    /// Copies `size` bytes at `R6 + member`; zeros if they cannot be read.
    fn copy(&mut self, member: u32, size: u8, slot: i16) {
        // bpf_probe_read_kernel(&found->slot, size, r6 + member);
        self.asm.address(Reg::R1, Reg::R7, found(slot).into());
        self.asm.set(Reg::R2, size.into());
        self.asm.address(Reg::R3, Reg::R6, member.cast_signed());
        self.asm.call(Helper::ReadKernel);
    }

    /// `R6` = the pointer in a slot.
    fn follow(&mut self, slot: i16, end: Label) {
        // r6 = found->slot; if (!r6) goto end;
        self.asm.load(Width::Double, Reg::R6, Reg::R7, found(slot));
        self.asm.jump_if(If::Equal, Reg::R6, 0, end);
    }
}
