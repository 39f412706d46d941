//! Schema files in TOML. For types see [`ArgumentType`](crate::schema::ArgumentType), for units [`Unit`](crate::schema::Unit).
//!
#![doc = include_str!("../../../../SCHEMAS.md")]

mod read;
mod shorthand;
mod write;

pub use self::read::parse;
pub use self::write::write;
