//! What a recorder observes of the processes that it records: their stacks ([`stacks`]), control groups ([`cgroups`]), code that they make at run time
//! ([`makers`]), thread contexts ([`thread_contexts`]), semaphores ([`semaphores`]), and whether the attached probes work in them ([`verify`]).
//!
//! Observers are stages ([`stage`]) through which all records pass in batches ([`batch`]). What is found not to work is a shortfall ([`shortfalls`]).

pub mod batch;
pub mod cgroups;
pub mod left_breakpoints;
pub mod makers;
pub mod semaphores;
pub mod shortfalls;
pub mod stacks;
pub mod stage;
pub mod thread_contexts;
pub mod verify;
