//! Semaphores that the kernel counts wrong, because segments of the file share pages of it.
//!
//! lld and mold place segments one after the other in the file, without padding, so that two segments map the same page of the file. The
//! kernel knows a semaphore by its file offset, and finds its memory by the first writable mapping of that page (kernel/events/uprobes.c,
//! `valid_ref_ctr_vma`). A breakpoint is written into each mapping of the site's page that is not writable, executable or not.

use object::elf::{FileHeader32, FileHeader64};
use object::endian::Endianness;
use object::read::elf::{FileHeader, SectionHeader};
use usdtrec_format::{Arch, Site};

use super::error::ElfError;
use super::excerpt::Excerpt;
use super::headers::Segment;
use super::object_file::ObjectFile;

/// File offset of the padding of `e_ident` (`EI_PAD`), and its end.
const IDENT_PADDING: [u64; 2] = [9, 16];
/// Maximum number of bytes that are read in search of unused ones.
const MAX_BYTES_READ: u64 = 64 << 10;

/// Why the kernel counts the semaphore of a site wrong. At least one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreFault {
    /// In processes that start or load the file later, the kernel increments another mapping of the semaphore's page: that of an earlier
    /// writable segment.
    pub is_misplaced: bool,
    /// The kernel increments the semaphore once in such processes, and decrements it once for each mapping of the site's page.
    pub is_counted_once: bool,
}

impl ObjectFile {
    /// Why the kernel counts the semaphore of a site wrong, with pages of `page` bytes; `None` if it counts right, or there is no
    /// semaphore.
    #[must_use]
    pub fn semaphore_fault(&self, site: &Site, page: u64) -> Option<SemaphoreFault> {
        if site.semaphore == 0 {
            return None;
        }
        let (offset, semaphore_offset) = (site.offset?, site.semaphore_offset?);
        let segments = &self.headers().segments;
        let own = segments
            .iter()
            .find(|segment| segment.writable && segment.holds(site.semaphore))?;
        let is_misplaced = segments.iter().any(|segment| {
            segment.writable
                && segment.address < own.address
                && segment.maps(semaphore_offset, page)
        });
        let read_only = segments
            .iter()
            .filter(|segment| !segment.writable && segment.maps(offset, page));
        let fault = SemaphoreFault {
            is_misplaced,
            is_counted_once: read_only.count() > 1,
        };
        (fault.is_misplaced || fault.is_counted_once).then_some(fault)
    }

    /// The load bias of a process in which `offset` of the file is mapped executable at `start`; `None` if no executable segment is there.
    #[must_use]
    pub fn load_bias(&self, start: u64, offset: u64, page: u64) -> Option<u64> {
        let segments = &self.headers().segments;
        let segment = segments
            .iter()
            .find(|segment| segment.executable && segment.maps(offset, page))?;
        let link_time = segment
            .address
            .wrapping_sub(segment.offset)
            .wrapping_add(offset);
        Some(start.wrapping_sub(link_time))
    }

    /// File offsets of unused bytes: mapped read-only, 0, and neither read nor executed by anybody, at multiples of a breakpoint's length, in a
    /// fixed order. A breakpoint may be written there.
    #[must_use]
    pub fn unused_bytes(&self, most: usize) -> Vec<u64> {
        let breakpoint = self.arch().and_then(Arch::breakpoint);
        let step = breakpoint.map_or(4, <[u8]>::len) as u64;
        let mut found = Vec::new();
        let mut room = MAX_BYTES_READ;
        for [start, end] in self.unused_ranges() {
            let len = (end - start).min(room);
            room -= len;
            let bytes = self.bytes_at(start, len as usize).unwrap_or_default();
            for at in (start.next_multiple_of(step)..).step_by(step as usize) {
                let within = (at - start) as usize;
                let Some(bytes) = bytes.get(within..within + step as usize) else {
                    break;
                };
                if bytes.iter().all(|byte| *byte == 0) {
                    found.push(at);
                }
                if found.len() == most {
                    return found;
                }
            }
        }
        found
    }

    /// Ranges of file offsets in read-only segments: padding of the header, and gaps between sections.
    fn unused_ranges(&self) -> Vec<[u64; 2]> {
        let headers = self.headers();
        let mut ranges = vec![IDENT_PADDING];
        // Headers that cannot be read again show no gaps.
        let mut loaded = self.loaded_sections().unwrap_or_default();
        loaded.sort_unstable();
        let mut end = loaded.first().map_or(0, |first| first[0]);
        for [start, next] in loaded {
            if start > end {
                ranges.push([end, start]);
            }
            end = end.max(next);
        }
        ranges.retain(|[start, end]| {
            let mut segments = headers.segments.iter();
            segments.any(|segment| {
                !segment.writable && segment.has_content(*start) && segment.has_content(end - 1)
            })
        });
        ranges
    }

    /// Ranges of file offsets of the loaded sections. They are read again, since not all sections are kept.
    fn loaded_sections(&self) -> Result<Vec<[u64; 2]>, ElfError> {
        let headers = Excerpt::of_headers(self)?;
        Ok(match self.is_class64() {
            true => loaded_sections::<FileHeader64<Endianness>>(&headers)?,
            false => loaded_sections::<FileHeader32<Endianness>>(&headers)?,
        })
    }
}

fn loaded_sections<Elf: FileHeader<Endian = Endianness>>(
    headers: &Excerpt,
) -> object::read::Result<Vec<[u64; 2]>> {
    let header = Elf::parse(headers)?;
    let endian = header.endian()?;
    let sections = header.section_headers(endian, headers)?.iter();
    let ranges = sections.filter_map(|section| {
        let (offset, size) = section.file_range(endian)?;
        let address: u64 = section.sh_addr(endian).into();
        let is_loaded = address != 0 && offset != 0 && size != 0;
        is_loaded.then(|| [offset, offset.saturating_add(size)])
    });
    Ok(ranges.collect())
}

impl Segment {
    /// Whether the page with a file offset is mapped for the segment's content.
    fn maps(&self, offset: u64, page: u64) -> bool {
        let first = self.offset / page;
        let end = self.offset.saturating_add(self.file_size).div_ceil(page);
        self.file_size > 0 && (first..end).contains(&(offset / page))
    }

    /// Whether a file offset is in the segment's content.
    fn has_content(&self, offset: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .is_some_and(|within| within < self.file_size)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PAGE: u64 = 4096;

    /// A segment: type PT_LOAD, flags, offset, address, file size and memory size.
    fn segment(flags: u32, offset: u64, address: u64, size: u64) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(1_u32.to_le_bytes());
        header.extend(flags.to_le_bytes());
        for word in [offset, address, address, size, size, PAGE] {
            header.extend(word.to_le_bytes());
        }
        header
    }

    /// An x86-64 file with these segments.
    fn file(segments: &[Vec<u8>]) -> ObjectFile {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        for half in [3_u16, 62] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend(1_u32.to_le_bytes());
        for word in [0_u64, 64, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(0_u32.to_le_bytes());
        for half in [64, 56, segments.len() as u16, 64, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend(segments.concat());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        file.as_file().set_len(0x10_000).unwrap();
        ObjectFile::open(file.path()).unwrap()
    }

    const R: u32 = 4;
    const RX: u32 = 5;
    const RW: u32 = 6;

    fn site(offset: u64, semaphore: u64, semaphore_offset: u64) -> Site {
        Site {
            pc: offset,
            base: 0,
            semaphore,
            offset: Some(offset),
            semaphore_offset: Some(semaphore_offset),
            args: String::new(),
        }
    }

    #[test]
    fn segments_back_to_back_are_faulty() {
        let file = file(&[
            segment(R, 0, 0, 0x734),
            segment(RX, 0x740, 0x1740, 0x240),
            segment(RW, 0x980, 0x2980, 0x1e8),
            segment(RW, 0xb68, 0x3b68, 0x50),
        ]);
        let both = SemaphoreFault {
            is_misplaced: true,
            is_counted_once: true,
        };
        let fault = |site| file.semaphore_fault(&site, PAGE);
        assert_eq!(fault(site(0x900, 0x3b78, 0xb78)), Some(both));
        // Without a semaphore nothing is counted.
        assert_eq!(fault(site(0x900, 0, 0)), None);
        assert_eq!(
            file.load_bias(0x5555_0000_1000, 0, PAGE),
            Some(0x5555_0000_0000)
        );
        assert_eq!(file.unused_bytes(3), [9, 10, 11]);
    }

    /// A section header: type SHT_PROGBITS, address, offset and size.
    fn section(address: u64, offset: u64, size: u64) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend([0_u32, 1].map(u32::to_le_bytes).concat());
        for word in [0, address, offset, size, 0, 0, 0] {
            header.extend(word.to_le_bytes());
        }
        header.resize(64, 0);
        header
    }

    /// Gaps between sections that are loaded are unused, also of sections whose names nobody asks for.
    #[test]
    fn gaps_between_sections_are_unused() {
        const SECTIONS: u64 = 0x8000;
        let made = file(&[segment(R, 0, 0, 0x2000)]);
        let mut bytes = made.bytes_at(0, 0x10_000).unwrap();
        let sections = [
            section(0x1000, 0x1000, 0x100),
            section(0, 0x1100, 0x80),
            section(0x1108, 0x1108, 0x10),
        ];
        bytes[40..48].copy_from_slice(&SECTIONS.to_le_bytes());
        // Three sections, and the number of that with the names.
        bytes[60..64].copy_from_slice(&[3, 0, 1, 0]);
        bytes[SECTIONS as usize..][..3 * 64].copy_from_slice(&sections.concat());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let file = ObjectFile::open(file.path()).unwrap();
        let after_header = file.unused_bytes(100);
        let in_gap: Vec<u64> = after_header
            .into_iter()
            .filter(|at| *at >= 0x1000)
            .collect();
        assert_eq!(in_gap, (0x1100..0x1108).collect::<Vec<u64>>());
    }

    /// Each of the two faults alone, and neither.
    #[test]
    fn each_page_is_checked() {
        let file = file(&[
            segment(R, 0, 0, 0x1800),
            segment(RX, 0x1800, 0x2800, 0x2000),
            segment(RW, 0x4000, 0x5000, 0x100),
            segment(RW, 0x4100, 0x6100, 0x2f00),
        ]);
        let fault = |site| {
            let fault = file.semaphore_fault(&site, PAGE)?;
            Some([fault.is_misplaced, fault.is_counted_once])
        };
        assert_eq!(fault(site(0x1900, 0x7100, 0x5100)), Some([false, true]));
        assert_eq!(fault(site(0x2900, 0x6100, 0x4100)), Some([true, false]));
        assert_eq!(fault(site(0x2900, 0x7100, 0x5100)), None);
        // In the first writable segment the kernel finds it.
        assert_eq!(fault(site(0x2900, 0x5000, 0x4000)), None);
        // Larger pages are shared by more segments.
        assert!(
            file.semaphore_fault(&site(0x2900, 0x7100, 0x5100), 1 << 16)
                .is_some()
        );
    }
}
