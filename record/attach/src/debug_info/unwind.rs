//! The caller's frame for any architecture, from the unwind table only.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, RunTimeEndian, UnwindContext, UnwindSection,
    Vendor,
};
use usdtrec_format::Arch;

use super::files::Unwind;
use super::slice::Slice;
use crate::plan::RegisterOffset;

/// The caller's frame (the canonical frame address) at a link-time address, from `.eh_frame`, else from `.debug_frame`.
pub(super) fn caller(
    tables: &Unwind,
    arch: Arch,
    endian: RunTimeEndian,
    pc: u64,
) -> Option<RegisterOffset> {
    // Tables mark the instruction from which on the return address is signed, by an opcode with another meaning on other architectures.
    let vendor = match arch.pointer_authentication_bits() {
        Some(_) => Vendor::AArch64,
        None => Vendor::Default,
    };
    if let Some((address, data)) = &tables.eh_frame {
        let mut table = EhFrame::from(Slice::new(data, endian));
        table.set_address_size(arch.pointer_size());
        table.set_vendor(vendor);
        let bases = BaseAddresses::default().set_eh_frame(*address);
        let found = cfa(&table, &bases, pc, EhFrame::cie_from_offset);
        if found.is_some() {
            return found;
        }
    }
    let (_, data) = tables.debug_frame.as_ref()?;
    let mut table = DebugFrame::from(Slice::new(data, endian));
    table.set_address_size(arch.pointer_size());
    table.set_vendor(vendor);
    cfa(
        &table,
        &BaseAddresses::default(),
        pc,
        DebugFrame::cie_from_offset,
    )
}

fn cfa<'a, S: UnwindSection<Slice<'a>>>(
    table: &S,
    bases: &BaseAddresses,
    pc: u64,
    cie: impl FnMut(
        &S,
        &BaseAddresses,
        S::Offset,
    ) -> gimli::Result<gimli::CommonInformationEntry<Slice<'a>>>,
) -> Option<RegisterOffset> {
    let mut context = UnwindContext::new();
    let row = table
        .unwind_info_for_address(bases, &mut context, pc, cie)
        .ok()?;
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some(RegisterOffset {
            register: *register,
            offset: *offset,
        }),
        CfaRule::Expression(_) => None,
    }
}
