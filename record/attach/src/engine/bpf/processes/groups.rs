//! The control groups whose processes are recorded: a map of their ids, which a program on the creation of groups adds to, so that a unit or container
//! that is started again is recorded from its first hit on.
//!
//! At a hit the ids of the group and of those above it are looked up, from the root on. The kernel creates and removes groups one at a time
//! (`cgroup_mutex`), so the programs need not disable preemption. Lockdown (confidentiality) lets programs read no names: then later groups are not known.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::features::trials::has_ancestors;
use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::sys::{self, MapKind, NamePrefix};
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::super::kernel_objects::TracepointProgram;
use super::super::kernel_objects::setup;
use crate::chosen::{GroupName, LaterName, ProcessChoice};
use crate::error::RecordError;

/// Maximum number of groups at a time.
const MAX_GROUPS: u32 = 4096;
/// Maximum number of their names and paths.
const MAX_NAMES: u32 = 1024;
/// Size of a name or path in the map, bytes, with a NUL at least.
const NAME_BYTES: i16 = NamePrefix::BYTES as i16;
const _: () = assert!(GroupName::MAX_BYTES < NamePrefix::BYTES);

/// Stack slots.
const ID: i16 = -8;
const VALUE: i16 = -16;
const NAME: i16 = VALUE - NAME_BYTES;
/// The number of its bits, and the name.
const NAME_KEY: i16 = NAME - 4;

/// The map, and what updates it.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Groups {
    ids: OwnedFd,
    _links: Vec<OwnedFd>,
}

/// Offsets of members of the kernel's structures, bytes.
#[derive(Clone, Copy, Debug)]
struct Members {
    /// `cgroup.root`, `cgroup_root.hierarchy_id`: 0 for version 2.
    root: u32,
    hierarchy: u32,
    /// `cgroup.kn`, `kernfs_node.id`, `kernfs_node.name`.
    node: u32,
    id: u32,
    name: u32,
}

impl Members {
    fn find(btf: &Btf) -> Option<Self> {
        Some(Self {
            root: btf.member("cgroup", &["root"])?,
            hierarchy: btf.member("cgroup_root", &["hierarchy_id"])?,
            node: btf.member("cgroup", &["kn"])?,
            id: btf.member("kernfs_node", &["id"])?,
            name: btf.member("kernfs_node", &["name"])?,
        })
    }
}

impl Groups {
    /// Finds the groups, and follows those that are made later.
    pub(in crate::engine::bpf) fn follow(
        choice: &ProcessChoice,
        btf: Option<&Btf>,
    ) -> Result<Self, RecordError> {
        if !has_ancestors() {
            return Err(KernelError::NoBpf(BpfRefusal::ControlGroups).into());
        }
        let error = |source| setup("map of control groups, or program that follows them")(source);
        let ids = sys::create_map_of::<u64, u32>(MapKind::Hash, MAX_GROUPS).map_err(error)?;
        let names =
            sys::create_map_of::<NamePrefix, u32>(MapKind::Prefixes, MAX_NAMES).map_err(error)?;
        let links = link(btf, ids.as_fd(), names.as_fd()).map_err(error)?;
        let groups = Self { ids, _links: links };
        // A group that is made after the directories were read, and before its name was in the map, is found by reading them again.
        for _ in 0..2 {
            let chosen = choice.groups()?;
            for name in &chosen.later {
                sys::insert(names.as_fd(), key(name)).map_err(error)?;
            }
            for group in &chosen.present {
                sys::insert(groups.as_fd(), group.id).map_err(error)?;
            }
        }
        Ok(groups)
    }
}

impl AsFd for Groups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ids.as_fd()
    }
}

/// A name or path as the map has it: an exact one with its NUL.
fn key(name: &LaterName) -> NamePrefix {
    let mut bytes = [0; NAME_BYTES as usize];
    // Longer ones are refused (`GroupName::check`), and the last byte is NUL.
    let length = name.text.len().min(GroupName::MAX_BYTES);
    bytes[..length].copy_from_slice(&name.text.as_bytes()[..length]);
    let end = usize::from(!name.is_prefix);
    NamePrefix {
        bits: 8 * (length + end) as u32,
        bytes,
    }
}

/// Attaches the programs on the creation and removal of groups.
fn link(btf: Option<&Btf>, ids: BorrowedFd<'_>, names: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let missing = || io::Error::other("the kernel does not describe its control groups (BTF)");
    let btf = btf.ok_or_else(missing)?;
    let members = Members::find(btf).ok_or_else(missing)?;
    let programs = [
        (Tracepoint::CgroupMade, made(members)),
        (Tracepoint::CgroupRemoved, removed(members)),
    ];
    let link = |(tracepoint, code): (Tracepoint, Option<Code>)| {
        let tracepoint = tracepoint.id(btf).ok_or_else(missing)?;
        let descriptor = |map| match map {
            Map::GroupNames => names,
            _ => ids,
        };
        Ok(TracepointProgram::attach(tracepoint, code, descriptor)?.link)
    };
    programs.into_iter().map(link).collect()
}

/// `cgroup_mkdir(cgroup, path)`: adds a group whose path is in the map, or whose name is and that root makes.
fn made(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, add) = (asm.label(), asm.label());
    // store_id(out); path = ctx[1]; name = cgroup->kn->name; /* a null pointer: goto out */
    store_id(&mut asm, members, out);
    asm.load(Width::Double, Reg::R7, Reg::R1, 8);
    asm.follow(Reg::R3, members.node, out);
    asm.follow(Reg::R3, members.name, out);
    asm.copy(Reg::R9, Reg::R3);
    // if (is_named(path)) goto add;
    is_named(&mut asm, Reg::R7, add);
    // Any user may make a group of any name where a subtree was delegated to it.
    // if ((u32)bpf_get_current_uid_gid()) goto out; if (is_named(name)) goto add; goto out;
    asm.call(Helper::UidGid);
    asm.cut_to_32(Reg::R0);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    is_named(&mut asm, Reg::R9, add);
    asm.jump(out);
    // add: VALUE = 1; bpf_map_update_elem(&Groups, &ID, &VALUE, BPF_ANY); out: return 0;
    asm.place(add);
    asm.store_value(Width::Word, Reg::R10, VALUE, 1);
    asm.update_map(Map::Groups, ID, VALUE);
    asm.place(out);
    asm.exit_with(0);
    asm.finish()
}

/// `cgroup_rmdir(cgroup, path)`: removes a group.
fn removed(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    // store_id(out); bpf_map_delete_elem(&Groups, &ID); out: return 0;
    store_id(&mut asm, members, out);
    asm.call_map(Helper::MapDelete, Map::Groups, ID);
    asm.place(out);
    asm.exit_with(0);
    asm.finish()
}

/// Stores the id of the program's group in its slot; `R3` = the group, and `R1` is the context still. Jumps to `out` if it is one of version 1, which may
/// have the id of another.
fn store_id(asm: &mut Assembler, members: Members, out: Label) {
    // cgroup = ctx[0]; if (cgroup->root->hierarchy_id) goto out;
    asm.load(Width::Double, Reg::R6, Reg::R1, 0);
    asm.copy(Reg::R3, Reg::R6);
    asm.follow(Reg::R3, members.root, out);
    asm.op_value(Op::Add, Reg::R3, members.hierarchy.cast_signed());
    asm.load(Width::Word, Reg::R3, Reg::R3, 0);
    asm.jump_if(If::NotEqual, Reg::R3, 0, out);
    // ID = cgroup->kn->id; r3 = cgroup;
    asm.copy(Reg::R3, Reg::R6);
    asm.follow(Reg::R3, members.node, out);
    asm.op_value(Op::Add, Reg::R3, members.id.cast_signed());
    asm.load(Width::Double, Reg::R3, Reg::R3, 0);
    asm.store(Width::Double, Reg::R10, ID, Reg::R3);
    asm.copy(Reg::R3, Reg::R6);
}

/// Jumps to `found` if the string at an address, or a beginning of it, is in the map of names.
fn is_named(asm: &mut Assembler, string: Reg, found: Label) {
    let unreadable = asm.label();
    // r8 = string; memset(NAME, 0, NAME_BYTES); NAME_KEY = 8 * NAME_BYTES;
    asm.copy(Reg::R8, string);
    for word in 0..NAME_BYTES / 8 {
        asm.store_value(Width::Double, Reg::R10, NAME + 8 * word, 0);
    }
    asm.store_value(Width::Word, Reg::R10, NAME_KEY, 8 * i32::from(NAME_BYTES));
    // if ((s64)bpf_probe_read_kernel_str(NAME, NAME_BYTES, r8) <= 0) goto unreadable;
    asm.address(Reg::R1, Reg::R10, NAME.into());
    asm.set(Reg::R2, NAME_BYTES.into());
    asm.copy(Reg::R3, Reg::R8);
    asm.call(Helper::ReadKernelStr);
    asm.jump_if(If::AtMostSigned, Reg::R0, 0, unreadable);
    // if (bpf_map_lookup_elem(&GroupNames, &NAME_KEY)) goto found;
    asm.call_map(Helper::MapLookup, Map::GroupNames, NAME_KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    asm.place(unreadable);
}
