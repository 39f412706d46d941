//! Programs that must not be preempted.
//!
//! From Linux 6.13 on the kernel may keep the stack of a program on a uprobe once for each CPU (`bpf_enable_priv_stack`, `kernel/bpf/verifier.c`),
//! as if another run of it could not begin on the CPU meanwhile. But these programs can be preempted. Two threads then write to the same stack:
//! records get values of other hits, and a pointer that the verifier has checked may be another one, which can crash the kernel. So our
//! programs disable preemption while they use their stack.

use usdtrec_format::Btf;

use super::insn::Assembler;
use super::kernel::btf;
use super::kernel::version::is_since;
use crate::error::RecordError;
use crate::kernel_error::BpfRefusal;

/// The functions of the kernel that disable and enable preemption (Linux 6.10), by the ids of their types in the kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preemption {
    pub(super) disable: u32,
    pub(super) enable: u32,
}

impl Preemption {
    /// What programs of this kernel need; `None` if it does not keep stacks for each CPU.
    ///
    /// # Errors
    /// [`BpfRefusal::Preemption`] if the kernel does not describe the functions.
    pub(super) fn from_btf(btf: Option<&Btf>) -> Result<Option<Self>, RecordError> {
        if !is_since(6, 13) {
            return Ok(None);
        }
        let read = if btf.is_none() {
            btf::from_kernel()
        } else {
            None
        };
        let btf = btf.or(read.as_ref());
        let function = |name| Some(btf?.function(name)?.kind);
        let functions = function("bpf_preempt_disable").zip(function("bpf_preempt_enable"));
        let (disable, enable) = functions.ok_or(RecordError::NoBpf(BpfRefusal::Preemption))?;
        Ok(Some(Self { disable, enable }))
    }
}

/// Disables preemption, if that is needed. `R0` to `R5` are lost.
pub(super) fn disable(asm: &mut Assembler, preemption: Option<Preemption>) {
    if let Some(preemption) = preemption {
        asm.call_kernel(preemption.disable);
    }
}

/// Enables it again. `R0` to `R5` are lost.
pub(super) fn enable(asm: &mut Assembler, preemption: Option<Preemption>) {
    if let Some(preemption) = preemption {
        asm.call_kernel(preemption.enable);
    }
}
