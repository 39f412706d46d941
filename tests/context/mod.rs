//! Arguments of enclosing spans (`--with`) and of those who held a lock (`--holders`), of real programs: against what the programs know.

mod filter;
mod java;
mod lock_order;
mod options;
mod postgres;
