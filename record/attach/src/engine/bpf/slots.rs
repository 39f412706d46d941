//! Stack slots of a program: offsets from `R10`, bytes. The verifier allows 512 bytes. Slots are shared where their uses cannot overlap:
//!
//! | bytes | what is there |
//! |---|---|
//! | -8 to -1 | the key of a lookup, the CPU |
//! | -24 to -9 | a temporary word, the time of the hit; the element of a new group |
//! | -56 to -25 | the site: words of its strings, memory to fault in, cookie, reads without a mapping |
//! | -80 to -57 | descriptors of thread-local storage; before a record is written, strings of filters from -304 on |
//! | -112 to -81 | ring or context, retried reads, size of the stack, end of the record |
//! | -168 to -113 | rates of stacks; where the thread context is |
//! | -272 to -169 | the span: key, element, level, marks |
//! | -320 to -313 | ids in the pid namespace of the recorder |

/// Key of a map lookup.
pub(super) const KEY: i16 = -4;
/// The CPU, which is the same throughout: a thread does not migrate inside a program.
pub(super) const CPU: i16 = -8;
/// A temporary word.
pub(super) const WORD: i16 = -16;
/// Time of the hit, ns.
pub(super) const NOW: i16 = -24;
/// The element of a new group of hits, two words, then the address of the element in the map. They are free when the values have been read.
pub(super) const NEW_GROUP: i16 = NOW;
/// Address of the words of the site's strings.
pub(super) const HABITS: i16 = -32;
/// Address of the memory to fault in. Filters use the slot, too.
pub(super) const ABSENT: i16 = -40;
/// Number of bytes to fault in.
pub(super) const ABSENT_BYTES: i16 = WORD;
/// The cookie of the site. No string of a filter reaches it.
pub(super) const COOKIE: i16 = -48;
/// A bit for each read that was retried, which is set if nothing is mapped there.
pub(super) const NOT_MAPPED: i16 = -56;
/// Descriptors of thread-local storage, 24 bytes. Filters store strings there after they have the address.
pub(super) const DESCRIPTORS: i16 = -80;
/// The ring of the CPU.
pub(super) const RING: i16 = -88;
/// The context of a hit whose stack is a key: records have no ring then.
pub(super) const CONTEXT: i16 = RING;
/// Number of reads that have been retried: earlier reads are not retried again.
pub(super) const READS: i16 = -96;
/// Index of the size of the stack.
pub(super) const STACK_SIZE: i16 = -104;
/// The bits of the values of a hit that could not be read, if its stack is a key: that has one size.
pub(super) const UNREAD: i16 = STACK_SIZE;
/// Size of the end of the record, bytes: what the callers are found from.
pub(super) const STACK_END: i16 = -112;
/// Ids of the thread and process in the pid namespace of the recorder, if it is not the first one. No string of a filter reaches it.
pub(super) const IDS: i16 = -320;
/// Key of the map of the rates of stacks: the cookie of the site, and the thread.
pub(super) const RATE_KEY: i16 = -128;
/// A new value of that map: when a second began, and the number of stacks since.
pub(super) const RATE: i16 = -144;
/// Address of the location of the variable with the thread context, in the map of them.
pub(super) const LOCATION: i16 = -152;
/// Address of the dynamic thread vector.
pub(super) const DTV: i16 = -160;
/// A word that is read on the way to the thread context.
pub(super) const VALUE: i16 = -168;
/// Key of the map of open spans: number of the span, level, task, and value.
pub(super) const SPAN_KEY: i16 = -200;
/// Address of the element of level 0 of that map.
pub(super) const SPAN_ELEMENT: i16 = -208;
/// Level of a span.
pub(super) const SPAN_LEVEL: i16 = -216;
/// What comes after its begin was removed.
pub(super) const SPAN_AFTER: i16 = -224;
/// Which arguments of the hit are known that begin and end must have in common, and their words.
pub(super) const SPAN_MARKS: i16 = -264;
/// Not 0 if the filter excludes the hit of a span. It is stored when the filter has no string any more.
pub(super) const SPAN_EXCLUDED: i16 = -272;
