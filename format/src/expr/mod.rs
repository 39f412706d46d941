//! Expressions over a probe's arguments, for filters and argument lists. The grammar is C's, with a few additional functions.
//!
//! ```text
//! expression   operators of C with C's precedence, the weakest first:
//!              ||  &&  |  ^  &  == != ~  < <= > >=  << >>  + -  * / %  and in front: ! ~ - + *
//! value        5  0x1f  0644  1.5  'c'  "text\n"  arg1  NAME  (expression)
//! a ~ "glob"   whether a string matches a glob with * ? [a-z]
//! (TYPE)e      e as an s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 ptr
//! &NAME        the address of an argument in memory, of any size
//! hi(NAME)     its second 8 bytes: *(u64*)(&NAME + 8); (u64)NAME are the first
//! *e           the pointer-sized word at the address e
//! *(TYPE*)e    a value of that type at the address e
//! str(e)       the string at the address e, up to its NUL
//! str(e, n)    the string of at most n bytes at the address e
//! bytes(e, n)  n bytes at the address e
//! ```
//!
//! `NAME` is the name of an argument, also as `args.NAME`; in filters of spans, `EVENT.NAME` is an argument of the event. `arg1`, `arg2`, … are arguments by index. If there is no argument of that name, `comm`, `pid`,
//! `tid` and `cpu` are those of the hit. A string that is compared with an argument of an enumeration is the number
//! of that word (`type == "scavenge"`). An argument that only looks like a string is one where it is compared with a string, and a number elsewhere, as it is
//! for programs in the kernel.
//!
//! Integers are from -2^63 to 2^64-1. They are compared by value, independent of sign and size, and a
//! result outside of this range wraps to 64 bits. A comparison is 1 or 0. If a part has no value (a missing argument,
//! a division by 0, a number compared with a string), the expression has none, except for `&&` and `||` if the other side decides;
//! a filter passes only hits for which the expression is true.
//!
//! Loads from memory and `str` are for the engines, at the hit; a filter of a trace has only what was captured.
//!
//! An argument list follows an event: `p:n(url=str(*arg1), arg4, fd=(s32)arg5)@PATH`. An argument
//! without `NAME=` keeps its name.

mod ast;
mod capture;
mod datum;
mod evaluate;
mod parse;
mod timed_filter;

pub use ast::{BinaryOperator, Expr, ExprError, Name, ScalarType, Unary};
pub use capture::{Capture, EventSpec, EventSpecError};
pub use datum::Datum;
pub use timed_filter::TimedFilter;
