//! The programs whose processes are recorded: a map of the addresses of their inodes in the kernel.
//!
//! At a hit the address of the inode that the process executes is looked up, so it does not matter under which path, in which mount namespace and on
//! which file system that is (the device numbers that `stat(2)` gives are not those of the kernel on btrfs and overlays). The addresses do not reach
//! the recorder: a program that it runs adds that of a file that it has open, and while it has, no other inode gets the address. A file that has
//! replaced one at its path is taken in the next pass of the recorder, within a tenth of a second.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::served::{Handle, Patience, Reader};
use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::members::ExecutableMembers;
use usdtrec_kernel::bpf::features::trials::has_task_types;
use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::sys::{self, MapKind, ProgramKind};
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::super::kernel_objects::setup;
use crate::chosen::ChoiceError;
use crate::error::RecordError;

/// Maximum number of files that are taken.
const MAX_FILES: usize = 256;

/// Stack slots.
const INODE: i16 = -8;
const VALUE: i16 = -16;

/// The map, and the files that it has.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Executables {
    inodes: OwnedFd,
    members: ExecutableMembers,
    paths: Vec<Executable>,
    /// Keeps the addresses of the inodes.
    open: Vec<(FileId, OwnedFd)>,
    /// Number of files that are not taken, because there are too many.
    left_out: u64,
}

/// A path, and the file that was there when it was last looked at.
#[derive(Debug)]
struct Executable {
    path: PathBuf,
    id: FileId,
}

/// Device and inode number.
type FileId = (u64, u64);

impl Executables {
    /// Takes the files at these paths.
    pub(in crate::engine::bpf) fn open(
        paths: &[PathBuf],
        btf: Option<&Btf>,
    ) -> Result<Self, RecordError> {
        let members = btf.and_then(ExecutableMembers::find);
        let members = members.filter(|_| has_task_types());
        let members = members.ok_or(KernelError::NoBpf(BpfRefusal::Executables))?;
        let inodes = sys::create_map_of::<u64, u32>(MapKind::Hash, MAX_FILES as u32);
        let mut executables = Self {
            inodes: inodes.map_err(setup("map of executables"))?,
            members,
            paths: Vec::new(),
            open: Vec::new(),
            left_out: 0,
        };
        for path in paths {
            let file = open(path).map_err(|source| ChoiceError::Executable {
                path: path.clone(),
                source,
            })?;
            let id = executables.take(file);
            executables.paths.push(Executable {
                path: path.clone(),
                id: id.map_err(setup("map of executables"))?,
            });
        }
        Ok(executables)
    }

    /// Where the kernel has the inode that a process executes.
    pub(in crate::engine::bpf) const fn members(&self) -> ExecutableMembers {
        self.members
    }

    /// Takes the files that have replaced others since the last time.
    pub(in crate::engine::bpf) fn look(&mut self) {
        for index in 0..self.paths.len() {
            let Executable { path, id } = &self.paths[index];
            let Ok(found) = handle(path, Patience::Short).map(|found| id_of(&found)) else {
                continue;
            };
            if found == *id {
                continue;
            }
            let is_known = self.open.iter().any(|(known, _)| *known == found);
            if is_known || self.open.len() >= MAX_FILES {
                self.paths[index].id = found;
                self.left_out += u64::from(!is_known);
                continue;
            }
            // If there is no file now, one may come.
            if let Ok(id) = open(path).and_then(|file| self.take(file)) {
                self.paths[index].id = id;
            }
        }
    }

    /// Number of files whose processes are not recorded although they have replaced others.
    pub(in crate::engine::bpf) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds the inode of an open file to the map.
    fn take(&mut self, file: Handle) -> io::Result<FileId> {
        let id = id_of(&file);
        let file = file.into_descriptor();
        let code = add(self.members, &file);
        let code = code.ok_or_else(|| io::Error::other("the program is too long"))?;
        let program = sys::load(ProgramKind::Run, &code.with_maps(|_| self.as_fd()))?;
        match sys::run(program.as_fd())? {
            0 => {
                self.open.push((id, file));
                Ok(id)
            }
            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        }
    }
}

impl AsFd for Executables {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inodes.as_fd()
    }
}

/// Opens a file by its path, for its inode only.
fn open(path: &Path) -> io::Result<Handle> {
    handle(path, Patience::Usual)
}

fn handle(path: &Path, patience: Patience) -> io::Result<Handle> {
    Handle::of_path(path, Reader::of_unknown(patience))
}

fn id_of(file: &Handle) -> FileId {
    let id = file.stat().id;
    (id.device, id.inode)
}

/// Adds the inode of an open file of the process that runs this. The result is 0, or a negative error number.
fn add(members: ExecutableMembers, file: &OwnedFd) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    let at = u32::try_from(file.as_raw_fd()).ok()?.checked_mul(8)?;
    // INODE = bpf_get_current_task()->files->fdt->fd[file]->f_inode; /* an error: goto out */
    asm.call(Helper::CurrentTask);
    asm.copy(Reg::R3, Reg::R0);
    for offset in [
        members.files,
        members.table,
        members.descriptors,
        at,
        members.inode,
    ] {
        read(&mut asm, offset, out);
    }
    // VALUE = 1; r0 = bpf_map_update_elem(&Executables, &INODE, &VALUE, BPF_ANY); out: return r0;
    asm.store_value(Width::Word, Reg::R10, VALUE, 1);
    asm.update_map(Map::Executables, INODE, VALUE);
    asm.place(out);
    asm.exit();
    asm.finish()
}

/// `R3`, and its slot, = the pointer in kernel memory at `R3 + offset`.
fn read(asm: &mut Assembler, offset: u32, out: Label) {
    // r0 = bpf_probe_read_kernel(&INODE, 8, r3 + offset); if (r0) goto out; r3 = INODE;
    asm.op_value(Op::Add, Reg::R3, offset.cast_signed());
    asm.address(Reg::R1, Reg::R10, INODE.into());
    asm.set(Reg::R2, 8);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    asm.load(Width::Double, Reg::R3, Reg::R10, INODE);
}
