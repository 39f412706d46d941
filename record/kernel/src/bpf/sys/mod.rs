//! bpf(2), without a library between us and the kernel. Its arguments are parts of `union bpf_attr`
//! (`include/uapi/linux/bpf.h`), each as long as the newest field that is used.

mod btf;
mod call;
mod info;
mod link;
mod map;
mod program;

pub use self::btf::{btf_from_kernel, btf_from_sysfs, kernel_btf};
pub use self::info::{recursion_misses, uprobes_of_links};
pub use self::link::{
    HitsOf, UprobeEvent, Uprobes, enable, link_perf_event, link_tracepoint, link_uprobes,
    open_uprobe, set_program,
};
pub use self::map::{
    MapKind, MapShape, NamePrefix, add, change, create_array_of_maps, create_ids, create_map,
    create_names, create_ring, create_set, create_works, insert, insert_bytes, insert_id,
    insert_name, insert_words, next_key, put_element, put_maps, read_element, read_map, remove,
    remove_bytes, token_of, value_of, words_of,
};
pub use self::program::{LoadError, ProgramKind, load, run};
