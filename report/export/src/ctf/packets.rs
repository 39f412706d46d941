//! Streams, written packet by packet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What packets begin with.
const MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of events of a packet, unless one event has more.
const PACKET: usize = 256 << 10;
/// Bytes of all packets that are not written yet.
const MAX_KEPT: usize = 32 << 20;
/// Streams: more CPUs than Linux can have.
const MAX_STREAMS: usize = 8192 + 1;

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamKey {
    /// Hits on a CPU.
    Cpu(u32),
    /// Hits of events whose samples have no CPU.
    NoCpu,
    /// No hits: how many were lost.
    Losses,
}

impl StreamKey {
    /// The number of its stream class.
    pub(crate) const fn class(self) -> u32 {
        match self {
            Self::Cpu(_) => 0,
            Self::NoCpu => 1,
            Self::Losses => 2,
        }
    }

    fn file(self) -> String {
        match self {
            Self::Cpu(cpu) => format!("cpu_{cpu}"),
            Self::NoCpu => "no_cpu".to_owned(),
            Self::Losses => "losses".to_owned(),
        }
    }
}

/// Streams that are being written.
#[derive(Debug)]
pub(crate) struct PacketStreams {
    folder: PathBuf,
    packets: BTreeMap<StreamKey, Packet>,
    /// Bytes of all packets.
    kept: usize,
}

/// Events that are not written yet.
#[derive(Debug, Default)]
struct Packet {
    /// Time of the first one, ns.
    first: u64,
    /// Time of the last one, ns.
    last: u64,
    events: Vec<u8>,
}

/// The packets of lost events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPackets {
    /// The earliest time of the trace, ns.
    pub(crate) first: u64,
    /// The latest time, ns.
    pub(crate) last: u64,
    /// Events lost in between.
    pub(crate) lost: u64,
}

impl PacketStreams {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            packets: BTreeMap::new(),
            kept: 0,
        }
    }

    /// Appends an event. Times of a stream must not decrease.
    ///
    /// # Errors
    /// Those of writing, and one for more streams than there can be CPUs.
    pub(crate) fn put(&mut self, stream: StreamKey, time: u64, event: &[u8]) -> io::Result<()> {
        if self.packets.len() >= MAX_STREAMS && !self.packets.contains_key(&stream) {
            let message = format!("expected hits of at most {MAX_STREAMS} CPUs, found more");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let packet = self.packets.entry(stream).or_default();
        if packet.events.is_empty() {
            packet.first = time;
        }
        packet.last = time;
        packet.events.extend_from_slice(event);
        self.kept += event.len();
        if packet.events.len() >= PACKET {
            self.kept -= packet.events.len();
            write(&self.folder, stream, packet, None)?;
        }
        if self.kept > MAX_KEPT {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all packets.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.kept = 0;
        for (stream, packet) in &mut self.packets {
            if !packet.events.is_empty() {
                write(&self.folder, *stream, packet, None)?;
            }
            packet.events = Vec::new();
        }
        Ok(())
    }

    /// Writes the stream of losses: readers compare the counts of two packets.
    pub(crate) fn losses(&self, LostPackets { first, last, lost }: LostPackets) -> io::Result<()> {
        for (time, lost) in [(first, 0), (last, lost)] {
            let mut packet = Packet {
                first: time,
                last: time,
                events: Vec::new(),
            };
            write(&self.folder, StreamKey::Losses, &mut packet, Some(lost))?;
        }
        Ok(())
    }
}

/// Appends a packet to the file of its stream, and empties it.
fn write(
    folder: &Path,
    stream: StreamKey,
    packet: &mut Packet,
    lost: Option<u64>,
) -> io::Result<()> {
    let mut context = Vec::new();
    context.extend(lost.into_iter().flat_map(u64::to_le_bytes));
    if let StreamKey::Cpu(cpu) = stream {
        context.extend(cpu.to_le_bytes());
    }
    // Magic number, stream, two times, two sizes.
    let size = 4 + 4 + 4 * 8 + context.len() + packet.events.len();
    let bits = size as u64 * 8;
    let mut head = Vec::new();
    head.extend(MAGIC.to_le_bytes());
    head.extend(stream.class().to_le_bytes());
    for number in [packet.first, packet.last, bits, bits] {
        head.extend(number.to_le_bytes());
    }
    head.extend(context);
    let path = folder.join(stream.file());
    // Not kept open: there may be more CPUs than a process may have open files.
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(&head)?;
    file.write_all(&packet.events)?;
    packet.events.clear();
    Ok(())
}

/// Appends a string. The format ends it with a NUL: one within becomes U+FFFD.
pub(crate) fn put_string(text: &str, out: &mut Vec<u8>) {
    match text.contains('\0') {
        true => out.extend(text.replace('\0', "\u{fffd}").bytes()),
        false => out.extend(text.bytes()),
    }
    out.push(0);
}
