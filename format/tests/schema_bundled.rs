//! The built-in schemas, held against the notes of real programs.

use usdtrec_format::schema::telemetry::conventions;
use usdtrec_format::schema::{ArgumentType, Schemas, bundled, conflict, toml};
use usdtrec_format::{Arch, parse_operands};

use crate::corpus::{arch, lines, text};

const ARCHES: [&str; 7] = [
    "amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x",
];

#[test]
fn every_file_reads_without_a_problem() {
    for text in bundled::texts() {
        let parsed = toml::parse(text);
        assert_eq!(parsed.problems, [], "{text}");
    }
    for probe in bundled::all() {
        let found = bundled::of_provider(&probe.provider);
        assert!(
            found.contains(probe),
            "{} is in a file of another provider",
            probe.signature()
        );
    }
}

#[test]
fn attributes_are_those_of_the_conventions() {
    let mut count = 0;
    for probe in bundled::all() {
        for (name, value) in &probe.telemetry.attributes {
            count += 1;
            let signature = probe.signature();
            assert!(conventions::kind(name).is_some(), "{signature}: {name}");
            assert_eq!(conventions::doubt(name, value), None, "{signature}: {name}");
        }
    }
    assert!(count > 100, "{count}");
}

/// Such numbers are compared with what debuggers show.
#[test]
fn addresses_are_typed_as_such() {
    let arguments = bundled::all().flat_map(|probe| &probe.arguments);
    let objects = ["monitor", "parker", "class_loader", "object", "mutex"];
    let objects: Vec<_> = arguments
        .filter(|argument| objects.contains(&&*argument.name))
        .collect();
    assert!(objects.len() > 10);
    for object in objects {
        assert_eq!(object.kind, Some(ArgumentType::Pointer), "{object:?}");
    }
}

#[test]
fn the_notes_of_real_programs_agree() {
    let providers = [
        "postgresql",
        "php",
        "ruby",
        "python",
        "libstdcxx",
        "libvirt",
        "hotspot",
        "hotspot_jni",
        "hs_private",
    ];
    let (mut known, mut typed) = (0, 0);
    let notes = ARCHES
        .iter()
        .flat_map(|arch| lines(&format!("notes-{arch}.jsonl")));
    for note in notes {
        let [provider, name, args] = ["provider", "name", "args"].map(|part| text(&note, part));
        if !providers.contains(&provider) {
            continue;
        }
        let arch = arch(&note);
        let operands = parse_operands(args, Some(arch));
        let choice = Schemas::built_in().choose(provider, name, operands.len());
        let schema = choice
            .schema
            .unwrap_or_else(|| panic!("{provider}:{name} {args:?}: {:?}", choice.misfits));
        known += 1;
        for (argument, operand) in schema.arguments.iter().zip(&operands) {
            typed += usize::from(argument.kind.is_some());
            // libvirt casts whatever it hands over to a word.
            let claimed = argument.kind.as_ref().and_then(ArgumentType::bytes);
            let loses = claimed.is_some_and(|claimed| claimed < operand.bytes(arch));
            assert!(
                provider == "libvirt" || operand.size.is_none() || !loses,
                "{arch:?} {}: bytes of {} in {args:?} would be lost",
                schema.signature(),
                argument.name
            );
            let conflict = conflict(argument, operand, arch);
            assert!(
                conflict.is_none(),
                "{arch:?} {} with {:?}: {}",
                schema.signature(),
                args,
                conflict.unwrap_or_default()
            );
            if argument.kind == Some(ArgumentType::String(None)) {
                assert_eq!(
                    operand.bytes(arch),
                    arch.pointer_size(),
                    "{}",
                    schema.signature()
                );
            }
        }
    }
    assert!(
        known > 1000 && typed > 1000,
        "{known} probes, {typed} types"
    );
}

/// Debian's glibc carries no probes, so that no notes of it are at hand: names, numbers of arguments and the sizes that they have in
/// a 64-bit program, as the probes of glibc 2.36 (64 bits) are written. All are of `libc` there, also those of threads.
const GLIBC: [(&str, &str); 40] = [
    ("memory_heap_new", "8@%rax 8@%rdx"),
    ("memory_arena_new", "8@%rax 8@%rdx"),
    ("memory_arena_reuse_wait", "8@%rax 8@%rdx 8@%rcx"),
    ("memory_arena_retry", "8@%rax 8@%rdx"),
    ("memory_sbrk_less", "8@%rax -8@%rdx"),
    ("memory_malloc_retry", "8@%rax"),
    ("memory_memalign_retry", "8@%rax 8@%rdx"),
    ("memory_mallopt", "-4@%eax -4@%edx"),
    ("memory_mallopt_mxfast", "8@%rax 8@%rdx"),
    ("memory_mallopt_trim_threshold", "8@%rax 8@%rdx -4@%ecx"),
    ("memory_mallopt_top_pad", "8@%rax 8@%rdx -4@%ecx"),
    ("memory_mallopt_mmap_threshold", "8@%rax 8@%rdx -4@%ecx"),
    ("memory_mallopt_mmap_max", "-4@%eax -4@%edx -4@%ecx"),
    ("memory_mallopt_perturb", "-4@%eax -4@%edx"),
    ("memory_mallopt_arena_test", "8@%rax 8@%rdx"),
    ("memory_mallopt_arena_max", "8@%rax 8@%rdx"),
    ("memory_mallopt_free_dyn_thresholds", "8@%rax 8@%rdx"),
    ("memory_tcache_double_free", "8@%rax 8@%rdx"),
    ("memory_tunable_tcache_max_bytes", "8@%rax 8@%rdx"),
    ("memory_tunable_tcache_count", "8@%rax 8@%rdx"),
    ("memory_tunable_tcache_unsorted_limit", "8@%rax 8@%rdx"),
    ("setjmp", "8@%rdi -4@%esi 8@%rax"),
    ("longjmp_target", "8@%rdi -4@%eax 8@%rdx"),
    ("lll_lock_wait", "8@%rdi"),
    ("lll_lock_wait_private", "8@%rdi"),
    ("pthread_create", "8@%rdi 8@%rsi 8@%rdx 8@%rcx"),
    ("pthread_start", "8@%rdi 8@%rsi 8@%rdx"),
    ("pthread_join", "8@%rdi"),
    ("pthread_join_ret", "8@%rdi -4@%esi 8@%rdx"),
    ("mutex_init", "8@%rdi"),
    ("mutex_entry", "8@%rdi"),
    ("mutex_acquired", "8@%rdi"),
    ("mutex_timedlock_entry", "8@%rdi 8@%rsi"),
    ("mutex_clocklock_entry", "8@%rdi -4@%esi 8@%rdx"),
    ("mutex_timedlock_acquired", "8@%rdi"),
    ("mutex_release", "8@%rdi"),
    ("cond_init", "8@%rdi 8@%rsi"),
    ("cond_wait", "8@%rdi 8@%rsi"),
    ("rdlock_acquire_read", "8@%rdi"),
    ("wrlock_acquire_write", "8@%rdi"),
];

#[test]
fn the_probes_of_glibc_fit_and_lose_no_bytes() {
    for (name, args) in GLIBC {
        let arch = Arch::X86_64;
        let operands = parse_operands(args, Some(arch));
        let choice = Schemas::built_in().choose("libc", name, operands.len());
        let schema = choice
            .schema
            .unwrap_or_else(|| panic!("libc:{name} {args}: {:?}", choice.misfits));
        for (argument, operand) in schema.arguments.iter().zip(&operands) {
            assert_eq!(conflict(argument, operand, arch), None, "{name}");
            let claimed = argument.kind.as_ref().and_then(ArgumentType::bytes);
            assert!(
                claimed.is_none_or(|claimed| claimed == operand.bytes(arch)),
                "{name}: {} of {args}",
                argument.name
            );
        }
    }
}
