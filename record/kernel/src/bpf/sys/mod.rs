//! bpf(2), without a library between us and the kernel. Its arguments are parts of `union bpf_attr`
//! (`include/uapi/linux/bpf.h`), each as long as the newest field that is used.

mod btf;
mod call;
mod event;
mod info;
mod kernel_btf;
mod link;
mod link_info;
mod map;
mod program;

pub use event::{UprobeEvent, open_uprobe};
pub use event::{enable, set_program};
pub use info::recursion_misses;
pub use kernel_btf::kernel_btf;
pub use link::{Uprobes, link_perf_event, link_tracepoint, link_uprobes};
pub use link_info::uprobes_of_links;
pub use map::{
    MapKind, MapShape, NamePrefix, add, change, create_array_of_maps, create_ids, create_map,
    create_names, create_ring, create_set, create_works, insert, insert_bytes, insert_id,
    insert_name, insert_words, next_key, put_element, put_maps, read_element, read_map, remove,
    remove_bytes, token_of, value_of,
};
pub use program::{LoadError, ProgramKind, load, run};
