//! A stack as plain data: names of functions and files.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_trace::unwind::known_cut::KnownCut;

/// Files of another recording by their paths there, with the path of the file of the same build-id in this one.
pub(crate) type SameFiles = HashMap<Arc<Path>, Arc<Path>>;

/// A stack, the innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStack {
    /// The frames.
    pub frames: Vec<FrameName>,
    /// Why there are no more frames; `None` if there are none, or none were recorded.
    pub cut: Option<KnownCut>,
}

/// What a frame is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FrameName {
    /// A function.
    Function {
        /// Its name, demangled.
        name: Arc<str>,
        /// The file that it is in.
        file: Arc<Path>,
        /// Whether its code was inlined in that of its caller.
        inlined: bool,
    },
    /// A place in a file that has no symbol there.
    Offset {
        /// The file.
        file: Arc<Path>,
        /// Offset in the file, bytes.
        offset: u64,
    },
    /// An address where no file is known to be mapped.
    Address(u64),
    /// A function of a script, or one that the process made at run time.
    Script {
        /// Its name with that of its class.
        name: Arc<str>,
        /// Its file; `None` if that is not known, or the function is not in the script.
        file: Option<Arc<Path>>,
    },
}

impl CallStack {
    /// What decides between stacks: the names of their frames, the outermost first.
    pub(crate) fn order(&self) -> Vec<u8> {
        let mut order = Vec::new();
        for frame in self.frames.iter().rev() {
            frame.put_order(&mut order);
            order.push(0);
        }
        if let Some(cut) = &self.cut {
            order.extend(cut.order());
        }
        order
    }
}

impl FrameName {
    /// What decides between frames.
    pub(crate) fn order(&self) -> Vec<u8> {
        let mut order = Vec::new();
        self.put_order(&mut order);
        order
    }

    /// What decides whether frames of two recordings are one, given which files of the other are known under another path here: a function by its
    /// name, whatever the file is called that it is in.
    pub(crate) fn common_order(&self, same_files: &SameFiles) -> Vec<u8> {
        match self {
            Self::Function { name, inlined, .. } => {
                let mut order = name.as_bytes().to_vec();
                order.extend(inlined.then_some(0));
                order
            }
            Self::Offset { file, offset } => Self::Offset {
                file: same_files.get(file).unwrap_or(file).clone(),
                offset: *offset,
            }
            .order(),
            other => other.order(),
        }
    }

    fn put_order(&self, order: &mut Vec<u8>) {
        match self {
            Self::Function {
                name,
                file,
                inlined,
            } => {
                order.extend(name.as_bytes());
                order.push(0);
                order.extend(file_name(file));
                order.extend(inlined.then_some(1));
            }
            Self::Offset { file, offset } => {
                order.extend(file_name(file));
                order.extend(format!("+{offset:#018x}").as_bytes());
            }
            Self::Address(address) => order.extend(format!("{address:#018x}").as_bytes()),
            Self::Script { name, file } => {
                order.extend(name.as_bytes());
                order.push(0);
                order.extend(file.iter().flat_map(|file| file.as_os_str().as_bytes()));
            }
        }
    }
}

/// A file's name without its directory.
fn file_name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or(path.as_os_str()).as_bytes()
}
