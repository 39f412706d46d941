//! Operands: a byte for the architecture, a byte for the registers of a sample, then an argument string.

use usdtrec_decode::Decoder;
use usdtrec_format::perf::{Attr, Sample, SampleType};
use usdtrec_format::{Arch, Location, parse_operands, split_operands};

const ARCHES: [Option<Arch>; 8] = [
    Some(Arch::X86_64),
    Some(Arch::I386),
    Some(Arch::Aarch64),
    Some(Arch::Arm),
    Some(Arch::Ppc64le),
    Some(Arch::S390x),
    Some(Arch::Riscv64),
    None,
];

/// Parses the operands, says them in words and JSON, and decodes a sample with them.
pub fn run(bytes: &[u8]) {
    let Some((&[arch, seed], args)) = bytes.split_first_chunk() else {
        return;
    };
    let arch = ARCHES[usize::from(arch) % ARCHES.len()];
    let args = String::from_utf8_lossy(args);
    let operands = parse_operands(&args, arch);
    let texts: Vec<&str> = split_operands(&args).collect();
    assert_eq!(operands.len(), texts.len(), "{texts:?}");
    for (operand, text) in operands.iter().zip(&texts) {
        assert!(!text.is_empty() && text.trim() == *text, "{text:?}");
        if let Location::Unparsed { error, .. } = &operand.location {
            assert!(!error.to_string().is_empty() && error.position <= text.len());
        }
        if let Some(arch) = arch {
            assert!(!operand.explain(arch).is_empty());
            let json = serde_json::to_string(&operand.json(arch)).unwrap();
            serde_json::from_str::<serde_json::Value>(&json).unwrap();
        }
    }
    decode(&args, arch, seed, operands.len());
}

fn decode(args: &str, arch: Option<Arch>, seed: u8, operands: usize) {
    let mask = u64::from(seed) * 0x0101_0101_0101_0101;
    let attr = Attr {
        sample_type: SampleType::REGS_USER | SampleType::STACK_USER,
        sample_regs_user: mask,
        sample_stack_user: 64,
        ..Attr::default()
    };
    let decoder = Decoder::new(args, arch, &attr);
    assert_eq!(decoder.len(), operands);
    // Registers that point into the stack, just beside it, and nowhere.
    let regs: Vec<u8> = (0..mask.count_ones())
        .flat_map(|place| match place % 4 {
            0 => 0x7ffc_0000_1000_u64.to_le_bytes(),
            1 => 0x7ffc_0000_1038_u64.to_le_bytes(),
            2 => 0_u64.to_le_bytes(),
            _ => u64::MAX.to_le_bytes(),
        })
        .collect();
    let stack = [seed; 64];
    let mut values = decoder.values();
    for (regs_abi, len) in [
        (2, regs.len()),
        (1, regs.len()),
        (0, 0),
        (2, regs.len() / 2),
    ] {
        let sample = Sample {
            regs_abi,
            regs: &regs[..len],
            stack: &stack[..len.min(stack.len())],
            ..Sample::default()
        };
        decoder.decode(&sample, &mut values);
        assert_eq!(values.len(), operands);
    }
}
