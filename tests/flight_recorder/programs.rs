//! The instructions of programs in the kernel.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands of bpf(2).
const GET_FD_BY_ID: libc::c_long = 13;
const GET_INFO: libc::c_long = 15;
/// Size of an instruction, bytes.
const INSTRUCTION: usize = 8;

/// `union bpf_attr` of both commands, as far as it is used.
#[repr(C)]
#[derive(Default)]
struct Attr {
    /// The program's id, or the descriptor.
    object: u32,
    info_len: u32,
    info: u64,
}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_len: u32,
    xlated_len: u32,
    jited: u64,
    xlated: u64,
}

fn bpf(command: libc::c_long, attr: &mut Attr) -> Option<i32> {
    // SAFETY: the kernel reads and writes the attr, whose pointer is to memory of the length that it has.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<Attr>()) };
    i32::try_from(result).ok().filter(|result| *result >= 0)
}

fn info(descriptor: &OwnedFd, info: &mut Info) -> Option<()> {
    let mut attr = Attr {
        object: descriptor.as_raw_fd().cast_unsigned(),
        info_len: size_of::<Info>() as u32,
        info: (&raw mut *info).addr() as u64,
    };
    bpf(GET_INFO, &mut attr).map(|_| ())
}

/// The instructions of a program.
fn instructions(id: u32) -> Option<Vec<[u8; INSTRUCTION]>> {
    let mut attr = Attr {
        object: id,
        ..Attr::default()
    };
    let descriptor = bpf(GET_FD_BY_ID, &mut attr)?;
    // SAFETY: the descriptor was returned just now, and nothing else has it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut found = Info::default();
    info(&descriptor, &mut found)?;
    let mut bytes = vec![0_u8; found.xlated_len as usize];
    let mut asked = Info {
        xlated_len: found.xlated_len,
        xlated: bytes.as_mut_ptr().addr() as u64,
        ..Info::default()
    };
    info(&descriptor, &mut asked)?;
    Some(bytes.as_chunks().0.to_vec())
}

/// The instructions of the programs of a process, those that its descriptors refer to, in the order of their ids, which is that of loading.
pub(super) fn programs_of(pid: u32) -> Vec<Vec<[u8; INSTRUCTION]>> {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .expect("descriptors")
        .flatten();
    let texts = infos.flat_map(|info| fs::read_to_string(info.path()));
    let mut ids: Vec<u32> = texts
        .filter_map(|text| {
            let mut lines = text.lines();
            let id = lines.find_map(|line| line.strip_prefix("prog_id:"))?;
            id.trim().parse().ok()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().filter_map(instructions).collect()
}

/// The same without the immediates that differ between any two recordings: the numbers of maps and addresses, which are 64-bit immediates in two
/// instructions, and those that samples are numbered from, which are added and larger than offsets in a stack.
pub(super) fn without_numbers(programs: &[Vec<[u8; INSTRUCTION]>]) -> Vec<Vec<[u8; INSTRUCTION]>> {
    /// `BPF_LD | BPF_IMM | BPF_DW`.
    const LOAD_64: u8 = 0x18;
    /// `BPF_ALU64 | BPF_ADD | BPF_K`.
    const ADD: u8 = 0x07;
    /// `MAX_BPF_STACK`, bytes.
    const MAX_STACK: u32 = 512;
    let is_large = |instruction: &[u8; INSTRUCTION]| {
        let immediate = instruction
            .last_chunk()
            .copied()
            .map_or(0, i32::from_le_bytes);
        immediate.unsigned_abs() > MAX_STACK
    };
    let program = |program: &Vec<[u8; INSTRUCTION]>| {
        let mut masked = program.clone();
        let mut is_second = false;
        for instruction in &mut masked {
            let is_first = !is_second && instruction[0] == LOAD_64;
            let is_added = instruction[0] == ADD && is_large(instruction);
            if is_first || is_second || is_added {
                // Operation, registers and offset stay.
                instruction[4..].fill(0);
            }
            is_second = is_first;
        }
        masked
    };
    programs.iter().map(program).collect()
}
