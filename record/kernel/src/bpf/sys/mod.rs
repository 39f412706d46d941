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
    MapKind, MapShape, NamePrefix, add, change, create_array, create_array_of_maps, create_map,
    create_map_of, create_ring, create_works, insert, next_key, put, put_maps, read, read_element,
    read_map, remove,
};
pub use self::program::{LoadError, ProgramKind, load, run};
