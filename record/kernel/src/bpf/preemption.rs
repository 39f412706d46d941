//! Programs that must not be preempted.
//!
//! Since Linux 6.13, and in older kernels of vendors that have its BPF, the kernel may keep the stack of a program on a uprobe once for each CPU (`bpf_enable_priv_stack`, `kernel/bpf/verifier.c`),
//! as if another run of it could not begin on the CPU meanwhile. But these programs can be preempted. Two threads then write to the same stack:
//! records get values of other hits, and a pointer that the verifier has checked may be another one, which can crash the kernel. So our
//! programs disable preemption while they use their stack. Whether a kernel does that is asked of its BTF, not of its version: other kernels
//! have cheaper hits, and before Linux 6.15 functions with memory, without it.

use usdtrec_format::Btf;

use super::insn::Assembler;
use super::sys::{self, ProgramKind};
use crate::host::kernel_version::is_since;
use crate::{BpfRefusal, KernelError};

/// The functions of the kernel that disable and enable preemption (Linux 6.10), by the ids of their types in the kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// `bpf_preempt_disable`.
    pub disable: u32,
    /// `bpf_preempt_enable`.
    pub enable: u32,
}

impl Preemption {
    /// What programs of this kernel need; `None` if it does not keep stacks for each CPU.
    ///
    /// # Errors
    /// [`BpfRefusal::Preemption`] if programs cannot call the functions, or the kernel does not describe them.
    pub fn from_btf(btf: Option<&Btf>) -> Result<Option<Self>, KernelError> {
        let read = match btf {
            Some(_) => None,
            None => sys::btf_from_kernel(),
        };
        let btf = btf.or(read.as_ref());
        // Without types nothing but the version is known.
        if !btf.map_or_else(|| is_since(6, 13), has_stacks_of_cpus) {
            return Ok(None);
        }
        let function = |name| Some(btf?.function(name)?.kind);
        let functions = function("bpf_preempt_disable").zip(function("bpf_preempt_enable"));
        let functions = functions.map(|(disable, enable)| Self { disable, enable });
        let usable = functions.filter(|functions| can_call(*functions));
        usable
            .map(Some)
            .ok_or(KernelError::NoBpf(BpfRefusal::Preemption))
    }
}

/// Whether the kernel can keep a stack of a program for each CPU: then programs have a pointer to it.
fn has_stacks_of_cpus(btf: &Btf) -> bool {
    const MEMBERS: [&str; 3] = [
        "priv_stack_ptr",
        "priv_stack_requested",
        "jits_use_priv_stack",
    ];
    let has = |member: &&str| btf.member("bpf_prog_aux", &[member]).is_some();
    MEMBERS.iter().any(has)
}

/// Whether programs on uprobes may call the functions.
fn can_call(functions: Preemption) -> bool {
    let mut asm = Assembler::default();
    // bpf_preempt_disable(); bpf_preempt_enable(); return 0;
    disable(&mut asm, Some(functions));
    enable(&mut asm, Some(functions));
    asm.exit_with(0);
    asm.finish()
        .is_some_and(|code| sys::load(ProgramKind::Uprobe, &code).is_ok())
}

/// Disables preemption, if that is needed. `R0` to `R5` are lost.
pub fn disable(asm: &mut Assembler, preemption: Option<Preemption>) {
    if let Some(preemption) = preemption {
        // bpf_preempt_disable();
        asm.call_kernel(preemption.disable);
    }
}

/// Enables it again. `R0` to `R5` are lost.
pub fn enable(asm: &mut Assembler, preemption: Option<Preemption>) {
    if let Some(preemption) = preemption {
        // bpf_preempt_enable();
        asm.call_kernel(preemption.enable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions are used where the kernel has such stacks, and nowhere else. Their pointer came with them, in Linux 6.13.
    #[test]
    fn preemption_is_disabled_where_stacks_are_those_of_cpus() {
        let Some(btf) = sys::btf_from_sysfs() else {
            return;
        };
        assert_eq!(has_stacks_of_cpus(&btf), is_since(6, 13));
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let preemption = Preemption::from_btf(Some(&btf)).expect("functions");
        assert_eq!(preemption.is_some(), has_stacks_of_cpus(&btf));
        // Another function's id is no way to disable preemption.
        let wrong = Preemption {
            disable: 0,
            enable: 0,
        };
        assert!(!can_call(wrong));
    }
}
