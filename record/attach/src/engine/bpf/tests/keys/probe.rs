//! A probe of the test program.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::{Arch, Site};
use usdtrec_kernel::bpf::sys::{self, Uprobes};
use usdtrec_kernel::host::capabilities;
use usdtrec_kernel::host::kernel_version::tells_processes;

use super::super::{Planned, Strings};

const PROVIDER: &str = "usdtrec_unit_tests";

/// The site of the probe in the file of this process.
pub(in crate::engine::bpf::tests) struct OwnSite {
    file: ObjectFile,
    site: Site,
    pub planned: Planned,
    _hits: MutexGuard<'static, ()>,
}

impl OwnSite {
    /// `None` if programs cannot be attached to one process here, which is a failure with `CI=true`.
    pub(in crate::engine::bpf) fn find(strings: Strings) -> Option<Self> {
        if !capabilities::has_admin() || !tells_processes() {
            let is_ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_ci, "expected root and Linux 6.11 or later");
            return None;
        }
        // Programs of other tests would see its hits.
        static HITS: Mutex<()> = Mutex::new(());
        let hits = HITS.lock().unwrap_or_else(PoisonError::into_inner);
        let file = ObjectFile::open("/proc/self/exe".as_ref()).unwrap();
        let binary = file.binary().unwrap();
        let mut probes = binary.probes.iter();
        let probe = probes.find(|known| known.provider == PROVIDER);
        let site = probe.unwrap().sites[0].clone();
        let arch = Arch::host().unwrap();
        let args = match arch {
            Arch::X86_64 => site.args.clone(),
            _ => site.args.replace('%', ""),
        };
        let planned = Planned::new(&args, arch, strings);
        Some(Self {
            file,
            site,
            planned,
            _hits: hits,
        })
    }

    /// Attaches a program to the site in this process.
    pub(in crate::engine::bpf) fn attach(&self, program: BorrowedFd<'_>) -> OwnedFd {
        let sites = Uprobes {
            offsets: vec![self.site.offset.unwrap()],
            ref_ctrs: vec![0],
            cookies: vec![0],
        };
        let path = self.file.kernel_path();
        sys::link_uprobes(program, &path, &sites, std::process::id()).unwrap()
    }
}

/// Hits the probe. Its arguments are a signed number of 16 bits, whose register has other bits above them, and the address of a string. The
/// names of registers have a `%`, as on x86.
pub(in crate::engine::bpf::tests) fn hit(number: i16, string: &str) {
    hit_string(number, &CString::new(string).unwrap());
}

/// The same.
#[inline(never)]
pub(super) fn hit_string(number: i16, string: &CStr) {
    // SAFETY: the only instruction is a nop; the note is in a section that the program does not load.
    unsafe {
        std::arch::asm!(
            "2: nop",
            ".pushsection .note.stapsdt, \"?\", \"note\"",
            ".balign 4",
            ".4byte 4f - 3f, 6f - 5f, 3",
            "3: .asciz \"stapsdt\"",
            "4: .balign 4",
            "5: .8byte 2b, 0, 0",
            ".asciz \"usdtrec_unit_tests\"",
            ".asciz \"hit\"",
            ".asciz \"-2@%{number} 8@%{string}\"",
            "6: .balign 4",
            ".popsection",
            number = in(reg) i64::from(number) ^ 0x5a_0000,
            string = in(reg) string.as_ptr(),
            options(readonly, nostack, preserves_flags)
        );
    }
}
