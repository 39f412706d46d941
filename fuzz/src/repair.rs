//! Checksums. An input whose checksums are wrong only shows that they are looked at; with right ones it gets further.

/// A run of bytes behind a magic that carries the CRC-32 of what follows it.
struct Form {
    magic: &'static [u8],
    /// From the magic to the checksum.
    crc: usize,
    /// From the magic to where the checksum's bytes begin.
    from: usize,
    /// Where they end, relative to the magic; `None` if that is not told.
    end: fn(&[u8], usize) -> Option<usize>,
}

const FORMS: [Form; 4] = [
    // A node of the index, which tells its length.
    Form {
        magic: b"USDTINDX",
        crc: 8,
        from: 12,
        end: |bytes, at| Some(word(bytes, at + 12)? as usize),
    },
    // A digest of metadata, which tells the length of its frame.
    Form {
        magic: b"USDTDGST",
        crc: 8,
        from: 12,
        end: |bytes, at| 48usize.checked_add(word(bytes, at + 12)? as usize),
    },
    // A chunk, in a record that tells its length 16 bytes before.
    Form {
        magic: b"USDC",
        crc: 8,
        from: 12,
        end: |bytes, at| {
            let size = word(bytes, at.checked_sub(16)? + 4)? >> 16;
            (size as usize).checked_sub(16)
        },
    },
    // The definitions, which tell the length of their frame.
    Form {
        magic: b"USDTDEFS",
        crc: 12,
        from: 32,
        end: |bytes, at| 32usize.checked_add(word(bytes, at + 24)? as usize),
    },
];

/// Sets every checksum that can be found to what it should be.
pub fn checksums(bytes: &mut [u8]) {
    for form in &FORMS {
        let found: Vec<usize> = bytes
            .windows(form.magic.len())
            .enumerate()
            .filter(|(_, window)| *window == form.magic)
            .map(|(at, _)| at)
            .collect();
        for at in found {
            let covered = (form.end)(bytes, at)
                .and_then(|end| bytes.get(at + form.from..at.checked_add(end)?));
            if let Some(covered) = covered {
                let crc = crc32fast::hash(covered).to_le_bytes();
                bytes[at + form.crc..at + form.crc + 4].copy_from_slice(&crc);
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}
