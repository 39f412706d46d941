//! What a recorder observes of the processes that it records. One table ([`process_table`]) has what their records say: who lives, runs what and has mapped
//! what. With it are observed their stacks ([`stacks`]), control groups ([`cgroups`]), code that they make at run time
//! ([`makers`]), thread contexts ([`thread_contexts`]), semaphores ([`semaphores`]), and whether the attached probes work in them ([`verify`]).
//!
//! Observers are stages ([`stage`]) through which all records pass in batches ([`batch`]). What is found not to work is a shortfall ([`shortfalls`]).

pub mod batch;
pub mod cgroups;
pub mod left_breakpoints;
mod limits;
pub mod makers;
pub mod process_table;
pub mod semaphores;
pub mod shortfalls;
pub mod stacks;
pub mod stage;
pub mod thread_contexts;
mod variable_finder;
pub mod verify;
