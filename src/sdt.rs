//! SDT probes in this program, as `sys/sdt.h` defines them for C.
//!
//! A probe is a `nop` in the code and a note in the file. The note has the addresses of the nop and of the probe's semaphore, and the
//! operands of the arguments at the nop. [`usdtrec_format::Note`] describes the layout of notes and of `.stapsdt.base`. The kernel
//! increments the semaphore while a tracer is attached; while it is 0, arguments are not evaluated and the nop is not executed.

use std::sync::atomic::AtomicU16;

/// Whether this architecture is supported; on others [`sdt_probe`] does nothing.
pub(crate) const PLANTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// A probe's semaphore: the number of attached tracers. Must be in the section `.probes`.
#[repr(transparent)]
pub(crate) struct Semaphore(AtomicU16);

impl Semaphore {
    /// A semaphore without tracers.
    pub(crate) const fn new() -> Self {
        Self(AtomicU16::new(0))
    }

    /// Whether a tracer is attached to the probe.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        // SAFETY: the pointer is to a live AtomicU16. The load is volatile because the kernel writes to it without the
        // compiler's knowledge.
        unsafe { self.0.as_ptr().read_volatile() != 0 }
    }
}

/// An argument, converted to the 64 bits of a register.
pub(crate) trait Word {
    /// The bits; signed numbers are sign-extended.
    fn word(self) -> u64;
}

macro_rules! words {
    ($($kind:ty => $word:expr),*) => {
        $(impl Word for $kind {
            fn word(self) -> u64 {
                let word: fn($kind) -> u64 = $word;
                word(self)
            }
        })*
    };
}

words! {
    u8 => u64::from,
    i8 => |number| i64::from(number).cast_unsigned(),
    u16 => u64::from,
    u32 => u64::from,
    i32 => |number| i64::from(number).cast_unsigned(),
    u64 => |number| number,
    i64 => i64::cast_unsigned,
    f32 => |number| u64::from(number.to_bits()),
    f64 => f64::to_bits
}

impl<T> Word for *const T {
    fn word(self) -> u64 {
        self.expose_provenance() as u64
    }
}

/// The type of an argument's kind.
macro_rules! sdt_type {
    (ptr) => { *const _ };
    ($kind:ident) => { $kind };
}

/// The register that the compiler chooses, by its name for a size.
#[cfg(target_arch = "x86_64")]
macro_rules! sdt_register {
    ($size:literal, $name:ident) => {
        concat!($size, "@{:", stringify!($name), "}")
    };
}

/// The register that the compiler chooses, which always has its full name.
#[cfg(target_arch = "aarch64")]
macro_rules! sdt_register {
    ($size:literal, $name:ident) => {
        concat!($size, "@{:x}")
    };
}

/// An operand of a note: size and register.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! sdt_operand {
    (u8) => {
        $crate::sdt::sdt_register!("1", l)
    };
    (i8) => {
        $crate::sdt::sdt_register!("-1", l)
    };
    (u16) => {
        $crate::sdt::sdt_register!("2", x)
    };
    (u32) => {
        $crate::sdt::sdt_register!("4", e)
    };
    (i32) => {
        $crate::sdt::sdt_register!("-4", e)
    };
    (u64) => {
        $crate::sdt::sdt_register!("8", r)
    };
    (i64) => {
        $crate::sdt::sdt_register!("-8", r)
    };
    (f32) => {
        $crate::sdt::sdt_register!("4f", e)
    };
    (f64) => {
        $crate::sdt::sdt_register!("8f", r)
    };
    (ptr) => {
        $crate::sdt::sdt_register!("8", r)
    };
}

/// `asm!` with the template first and the options of the architecture last.
#[cfg(target_arch = "x86_64")]
macro_rules! sdt_asm {
    ($template:expr, $($operands:tt)*) => {
        core::arch::asm!($template, $($operands)*, options(att_syntax, readonly, nostack, preserves_flags))
    };
}

/// `asm!` with the template first and the options of the architecture last.
#[cfg(target_arch = "aarch64")]
macro_rules! sdt_asm {
    ($template:expr, $($operands:tt)*) => {
        core::arch::asm!($template, $($operands)*, options(readonly, nostack, preserves_flags))
    };
}

/// Defines a probe: provider, name, semaphore, then the kind and the value of each argument.
///
/// ```text
/// sdt_probe!("usdtrec", "request__done", REQUEST_DONE, u64 id, i32 status, ptr url.as_ptr());
/// ```
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! sdt_probe {
    ($provider:literal, $name:literal, $semaphore:ident, $kind:ident $value:expr $(, $kinds:ident $values:expr)*) => {
        if $semaphore.is_watched() {
            // SAFETY: the only instruction is a nop; everything else goes into sections that the program does not load
            // (the note) or never reads (.stapsdt.base). Labels are local.
            unsafe {
                $crate::sdt::sdt_asm!(
                    concat!(
                        "2: nop\n",
                        // Keeps the base from the linker's garbage collection; the reference in the note, which is not loaded, does not.
                        ".reloc 2b, BFD_RELOC_NONE, _.stapsdt.base\n",
                        ".pushsection .note.stapsdt, \"?\", \"note\"\n",
                        ".balign 4\n",
                        ".4byte 4f - 3f, 6f - 5f, 3\n",
                        "3: .asciz \"stapsdt\"\n",
                        "4: .balign 4\n",
                        "5: .8byte 2b, _.stapsdt.base, {semaphore}\n",
                        ".asciz \"", $provider, "\"\n",
                        ".asciz \"", $name, "\"\n",
                        ".asciz \"", $crate::sdt::sdt_operand!($kind),
                        $(" ", $crate::sdt::sdt_operand!($kinds),)* "\"\n",
                        "6: .balign 4\n",
                        ".popsection\n",
                        ".ifndef _.stapsdt.base\n",
                        ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n",
                        ".weak _.stapsdt.base\n",
                        ".hidden _.stapsdt.base\n",
                        "_.stapsdt.base: .space 1\n",
                        ".size _.stapsdt.base, 1\n",
                        ".popsection\n",
                        ".endif\n",
                    ),
                    in(reg) { let value: $crate::sdt::sdt_type!($kind) = $value; $crate::sdt::Word::word(value) },
                    $(in(reg) { let value: $crate::sdt::sdt_type!($kinds) = $values; $crate::sdt::Word::word(value) },)*
                    semaphore = sym $semaphore
                );
            }
        }
    };
}

/// Defines no probe: this architecture has no template.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! sdt_probe {
    ($provider:literal, $name:literal, $semaphore:ident $(, $kind:ident $value:expr)*) => {
        if $semaphore.is_watched() {
            $(
                let value: $crate::sdt::sdt_type!($kind) = $value;
                $crate::sdt::Word::word(value);
            )*
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use {sdt_asm, sdt_operand, sdt_register};
pub(crate) use {sdt_probe, sdt_type};
