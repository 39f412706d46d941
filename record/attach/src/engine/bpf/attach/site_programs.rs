//! The programs of sites, loaded: one for all sites, as far as it does not become too long.
//!
//! Sites with the same code have one variant of it. Programs are loaded side by side.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_kernel::bpf::features::trials::has_cookies;
use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::sys::{self, LoadError, ProgramKind};
use usdtrec_kernel::signals::EndSignal;
use usdtrec_kernel::{BpfRefusal, KernelError, KernelOperation};

use super::super::contract::{Cookie, RecordedProcesses};
use super::super::program::generate;
use super::super::program::spec::{Common, Spec};
use crate::engine::options::AttachMethod;
use crate::engine::release::{Descriptors, Release};
use crate::error::RecordError;
use crate::select::probe::PlannedProbe;

/// A site to attach to.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Site<'a> {
    pub probe: &'a PlannedProbe,
    pub site: &'a usdtrec_format::Site,
    /// What its program captures, without a cookie.
    pub spec: Spec<'a>,
    /// The unit with which it is detached for a time; `None` if it stays attached.
    pub unit: Option<usize>,
}

/// The maps that programs use.
pub(in crate::engine::bpf) struct Maps<'a> {
    pub tracked: BorrowedFd<'a>,
    /// The others that there are. The control map is that of the part.
    pub others: HashMap<Map, BorrowedFd<'a>>,
    /// Whether processes that recorded ones start can be held until probes are attached to them.
    pub can_hold: bool,
}

/// Maximum number of instructions of a program of several variants: jumps reach three times as far, and the verifier follows a million. What the
/// kernel replaces in a program takes a time that grows with its square.
const MAX_WORDS: usize = 10_000;
/// Up to so many codes with filters have programs of their own: a hit that is rejected would cost a quarter more if the variant had to be chosen
/// before.
const MAX_ALONE: usize = 8;

/// The loaded programs of sites.
#[derive(Debug)]
pub(super) struct SitePrograms {
    /// The variant of each site; `None` if there is no program for it.
    variants: Vec<Option<Variant>>,
    /// The programs.
    pub programs: Arc<Vec<OwnedFd>>,
    /// The sites of files that nobody named for which there is no program.
    pub bad: Vec<BadSite>,
}

/// A site that was not attached to.
#[derive(Debug)]
pub(in crate::engine::bpf) struct BadSite {
    /// Index of the site.
    pub site: usize,
    pub error: RecordError,
}

/// What the sites of a link have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LinkKey {
    /// Index of the program.
    pub program: usize,
    file: FileId,
    pub unit: Option<usize>,
}

/// A variant of a program.
#[derive(Clone, Copy, Debug)]
struct Variant {
    /// Index of the program.
    program: usize,
    /// Number of the variant in it.
    number: u16,
}

/// What is loaded, and how.
#[derive(Clone, Copy)]
pub(super) struct Loading<'a> {
    pub sites: &'a [Site<'a>],
    pub common: &'a Common,
    pub maps: &'a Maps<'a>,
    pub attach_method: AttachMethod,
}

/// The codes of sites.
#[derive(Default)]
struct Codes {
    different: Vec<CodeOfSite>,
    /// Index of each site's code; `None` if there can be none.
    of_site: Vec<Option<usize>>,
}

/// A code that several sites may have.
struct CodeOfSite {
    /// Index of the first of them.
    site: usize,
    /// Number of instructions.
    words: usize,
    has_filter: bool,
}

/// All loaded programs, and the codes that the kernel refuses: the error, and an event.
struct LoadedAll {
    loaded: Vec<Loaded>,
    refused: HashMap<usize, (i32, String)>,
}

/// A loaded program, and the indexes of the codes that it has.
struct Loaded {
    program: OwnedFd,
    codes: Range<usize>,
}

impl SitePrograms {
    /// Generates and loads the programs.
    pub(super) fn load(loading: &Loading<'_>, end_signal: &EndSignal) -> Result<Self, RecordError> {
        let codes = loading.codes()?;
        let LoadedAll { loaded, refused } = loading.load_all(&codes, end_signal)?;
        let mut of_code: HashMap<usize, Variant> = HashMap::new();
        let mut programs = Vec::new();
        for Loaded { program, codes } in loaded {
            of_code.extend((0..).zip(codes).map(|(number, code)| {
                let program = programs.len();
                (code, Variant { program, number })
            }));
            programs.push(program);
        }
        let variants = codes.of_site.iter().map(|code| {
            let code = code.as_ref()?;
            of_code.get(code).copied()
        });
        let variants: Vec<Option<Variant>> = variants.collect();
        let mut bad = Vec::new();
        for (site, _) in variants.iter().enumerate().filter(|(_, one)| one.is_none()) {
            let code = codes.of_site.get(site).copied().flatten();
            let refusal = code.and_then(|code| refused.get(&code));
            let error = match refusal {
                Some((errno, event)) => KernelError::Operation {
                    operation: KernelOperation::Program(event.clone()),
                    source: io::Error::from_raw_os_error(*errno),
                },
                None => KernelError::NoBpf(BpfRefusal::TooManyArguments),
            };
            bad.push(BadSite {
                site,
                error: error.into(),
            });
        }
        Ok(Self {
            variants,
            programs: Arc::new(programs),
            bad,
        })
    }

    /// The cookie of a site, by the site's index; `is_everywhere` as in [`Cookie`].
    pub(super) fn cookie(&self, index: usize, site: &Site<'_>, is_everywhere: bool) -> u64 {
        let cookie = Cookie {
            event: site.spec.layout.id,
            variant: self.variant(index).map_or(0, |variant| variant.number),
            is_everywhere,
            index: index as u32,
        };
        cookie.word()
    }

    /// A program, by its index.
    pub(super) fn get(&self, index: usize) -> io::Result<BorrowedFd<'_>> {
        let program = self.programs.get(index);
        program
            .map(AsFd::as_fd)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// The program of a site, by the site's index.
    pub(super) fn of_site(&self, site: usize) -> io::Result<BorrowedFd<'_>> {
        let variant = self.variant(site).ok_or(io::ErrorKind::NotFound)?;
        self.get(variant.program)
    }

    fn variant(&self, site: usize) -> Option<&Variant> {
        self.variants.get(site)?.as_ref()
    }

    /// The sites of each link, by their indexes.
    pub(super) fn together(&self, sites: &[Site<'_>]) -> HashMap<LinkKey, Vec<usize>> {
        let mut together: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, (site, variant)) in sites.iter().zip(&self.variants).enumerate() {
            let Some(variant) = variant else {
                continue;
            };
            let key = LinkKey {
                program: variant.program,
                file: site.probe.file().id(),
                unit: site.unit,
            };
            together.entry(key).or_default().push(index);
        }
        together
    }
}

impl Loading<'_> {
    /// The different codes of the sites.
    fn codes(&self) -> Result<Codes, RecordError> {
        let mut known: HashMap<Code, usize> = HashMap::new();
        let mut codes = Codes::default();
        for index in 0..self.sites.len() {
            let Some(code) = self.generate(&[index]) else {
                if !self.sites[index].probe.is_found {
                    return Err(KernelError::NoBpf(BpfRefusal::TooManyArguments).into());
                }
                codes.of_site.push(None);
                continue;
            };
            let words = code.main_words();
            let next = codes.different.len();
            let of_site = *known.entry(code).or_insert(next);
            if of_site == next {
                codes.different.push(CodeOfSite {
                    site: index,
                    words,
                    has_filter: self.sites[index].spec.condition.is_some(),
                });
            }
            codes.of_site.push(Some(of_site));
        }
        Ok(codes)
    }

    /// Whether each program is for one site, whose cookie is in it: links to many sites of one program came after cookies.
    fn is_of_one_site(&self) -> bool {
        let has_none = self.attach_method == AttachMethod::Event && !has_cookies();
        has_none || have_one_cookie(self.sites.len(), self.common.recorded)
    }

    /// Generates the program of these sites, with a variant for each.
    fn generate(&self, sites: &[usize]) -> Option<Code> {
        let sites = sites.iter().filter_map(|index| {
            let site = self.sites.get(*index)?;
            let cookie = Cookie {
                event: site.spec.layout.id,
                variant: 0,
                is_everywhere: false,
                index: *index as u32,
            };
            Some(Spec {
                cookie: self.is_of_one_site().then_some(cookie.word()),
                ..site.spec.clone()
            })
        });
        let specs: Vec<Spec<'_>> = sites.collect();
        generate(&specs.iter().collect::<Vec<_>>(), self.common)
    }

    /// Loads all codes, in as few programs as the kernel takes. Those of files that nobody named may be refused, if others are not.
    fn load_all(&self, codes: &Codes, end_signal: &EndSignal) -> Result<LoadedAll, RecordError> {
        let mut loaded = Vec::new();
        let mut refused = HashMap::new();
        let mut first = None;
        let mut packs = codes.packs(self.is_of_one_site());
        while !packs.is_empty() {
            if end_signal.has_arrived() {
                return Err(Release::start(Descriptors::default()).interrupted());
            }
            let generated = packs.iter().map(|pack| self.generate(&codes.sites(pack)));
            let generated: Vec<Option<Code>> = generated.collect();
            let results = side_by_side(&generated, |code| {
                let code = code.as_ref()?;
                Some(load(code, self.maps, self.attach_method))
            });
            let mut halves = Vec::new();
            for (pack, result) in std::mem::take(&mut packs).into_iter().zip(results) {
                match result {
                    Some(Ok(program)) => loaded.push(Loaded {
                        program,
                        codes: pack,
                    }),
                    _ if pack.len() > 1 => {
                        let middle = pack.start + pack.len() / 2;
                        halves.extend([pack.start..middle, middle..pack.end]);
                    }
                    result => {
                        let error = match result {
                            Some(Err(refusal)) => self.refused(&codes.sites(&pack), refusal),
                            _ => KernelError::NoBpf(BpfRefusal::TooManyArguments),
                        };
                        if !self.is_found(codes, pack.start) {
                            return Err(error.into());
                        }
                        if let KernelError::Operation { operation, source } = &error
                            && let KernelOperation::Program(event) = operation
                        {
                            let errno = source.raw_os_error().unwrap_or(libc::EINVAL);
                            refused.insert(pack.start, (errno, event.clone()));
                        }
                        first.get_or_insert(error);
                    }
                }
            }
            // It is the kernel that refuses, or there is nothing else.
            if let Some(error) = first.take_if(|_| loaded.is_empty()) {
                return Err(error.into());
            }
            packs = halves;
        }
        loaded.sort_by_key(|loaded: &Loaded| loaded.codes.start);
        Ok(LoadedAll { loaded, refused })
    }

    /// Whether all sites with a code are of files that nobody named.
    fn is_found(&self, codes: &Codes, code: usize) -> bool {
        let sites = self.sites.iter().zip(&codes.of_site);
        let mut sites = sites.filter(|(_, of_site)| **of_site == Some(code));
        sites.all(|(site, _)| site.probe.is_found)
    }

    /// The error for the program of sites that the verifier refused.
    fn refused(&self, sites: &[usize], refusal: LoadError) -> KernelError {
        let site = sites.first().and_then(|index| self.sites.get(*index));
        let Some(site) = site else {
            return KernelError::NoBpf(BpfRefusal::NoSite);
        };
        KernelError::Operation {
            operation: KernelOperation::Program(site.probe.event()),
            source: refusal.into(),
        }
    }
}

impl Codes {
    /// Which codes are in a program together, by their indexes: in as few programs as can be, of about the same length, for they are loaded side
    /// by side.
    fn packs(&self, is_of_one_site: bool) -> Vec<Range<usize>> {
        let filtered = self.different.iter().filter(|code| code.has_filter).count();
        let is_alone =
            |code: &CodeOfSite| is_of_one_site || code.has_filter && filtered <= MAX_ALONE;
        let words = self.different.iter().map(|code| code.words);
        let (all, longest) = (words.clone().sum::<usize>(), words.max().unwrap_or(0));
        let each = all.div_ceil(all.div_ceil(MAX_WORDS).max(1));
        let most = MAX_WORDS.min(each + longest);
        let mut packs: Vec<Range<usize>> = Vec::new();
        // Of a program to which others may be added.
        let mut words = None;
        for (index, code) in self.different.iter().enumerate() {
            let together = words
                .map(|words: usize| words + code.words)
                .filter(|words| *words <= most && !is_alone(code));
            match packs.last_mut() {
                Some(pack) if together.is_some() => pack.end = index + 1,
                _ => packs.push(index..index + 1),
            }
            words = together.or_else(|| (!is_alone(code)).then_some(code.words));
        }
        packs
    }

    /// A site with each of these codes.
    fn sites(&self, pack: &Range<usize>) -> Vec<usize> {
        let codes = self.different.get(pack.clone()).unwrap_or_default();
        codes.iter().map(|code| code.site).collect()
    }
}

/// Whether the links of so many sites have the same cookie. Then the kernel is not asked, which takes a tenth of the time of a program that
/// records a hit.
fn have_one_cookie(sites: usize, recorded: RecordedProcesses) -> bool {
    sites == 1 && recorded != RecordedProcesses::Apart
}

/// The results of `job` for `items`, worked out on as many threads as there are CPUs.
fn side_by_side<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let run = |items: &[T]| items.iter().map(&job).collect::<Vec<R>>();
    // The number of CPUs is read from several files.
    if items.len() < 2 {
        return run(items);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = items.len().div_ceil(threads);
    let Some((first, others)) = items.split_at_checked(each) else {
        return run(items);
    };
    std::thread::scope(|scope| {
        let begin = |items| {
            let thread = std::thread::Builder::new();
            let spawned = thread.spawn_scoped(scope, move || run(items));
            (spawned.ok(), items)
        };
        let others: Vec<_> = others.chunks(each).map(begin).collect();
        let mut results = run(first);
        for (thread, items) in others {
            results.extend(match thread {
                Some(thread) => thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // No thread could be started.
                None => run(items),
            });
        }
        results
    })
}

fn load(code: &Code, maps: &Maps<'_>, attach_method: AttachMethod) -> Result<OwnedFd, LoadError> {
    // Programs do not use a map that is not there.
    let code = code.with_maps(|map| maps.others.get(&map).copied().unwrap_or(maps.tracked));
    let kind = match attach_method {
        AttachMethod::Multi => ProgramKind::UprobeMulti,
        AttachMethod::Event => ProgramKind::Uprobe,
    };
    sys::load(kind, &code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs(codes: &[(usize, bool)], is_of_one_site: bool) -> Vec<Range<usize>> {
        let different = codes.iter().map(|(words, has_filter)| CodeOfSite {
            site: 0,
            words: *words,
            has_filter: *has_filter,
        });
        let codes = Codes {
            different: different.collect(),
            of_site: Vec::new(),
        };
        codes.packs(is_of_one_site)
    }

    #[test]
    fn codes_are_together_as_far_as_they_fit_and_few_filters_are_alone() {
        let half = MAX_WORDS / 2;
        assert_eq!(packs(&[(half, false); 3], false), [0..2, 2..3]);
        assert_eq!(packs(&[(half, false); 2], true), [0..1, 1..2]);
        assert_eq!(
            packs(
                &[(9, false), (9, false), (9, true), (9, false), (9, false)],
                false
            ),
            [0..2, 2..3, 3..5]
        );
        assert_eq!(packs(&[(9, true); MAX_ALONE], false).len(), MAX_ALONE);
        assert_eq!(packs(&[(9, true); MAX_ALONE + 1], false).len(), 1);
        assert_eq!(packs(&[(MAX_WORDS + 1, false), (9, false)], false).len(), 2);
    }

    #[test]
    fn links_of_one_site_have_one_cookie_unless_processes_have_their_own() {
        let whose = [
            RecordedProcesses::All,
            RecordedProcesses::Processes,
            RecordedProcesses::Threads,
            RecordedProcesses::Apart,
        ];
        let of_one = whose.map(|recorded| have_one_cookie(1, recorded));
        assert_eq!(of_one, [true, true, true, false]);
        assert!(!have_one_cookie(2, RecordedProcesses::All));
    }

    #[test]
    fn results_are_in_the_order_of_their_items() {
        for count in [0, 1, 2, 7, 100] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(side_by_side(&items, |item| *item), items);
        }
    }
}
