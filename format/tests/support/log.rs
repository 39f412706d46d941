//! The writes that a trace is made of, so that a kill can be placed between any two of them or inside one.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use usdtrec_format::trace::Storage;

/// One step of the writer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Bytes at a file offset.
    Write(u64, Vec<u8>),
    /// A new length.
    SetLen(u64),
}

/// A file that remembers how it came about. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Log(Rc<RefCell<Vec<Step>>>);

impl Storage for Log {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0
            .borrow_mut()
            .push(Step::Write(offset, bytes.to_vec()));
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.borrow_mut().push(Step::SetLen(len));
        Ok(())
    }
}

impl Log {
    /// Steps so far.
    pub fn steps(&self) -> usize {
        self.0.borrow().len()
    }

    /// Bytes that a step writes.
    pub fn len(&self, step: usize) -> usize {
        match &self.0.borrow()[step] {
            Step::Write(_, bytes) => bytes.len(),
            Step::SetLen(_) => 0,
        }
    }

    /// Whether a step is one copy within a page, which no signal parts: a commit.
    pub fn is_commit(&self, step: usize) -> bool {
        match &self.0.borrow()[step] {
            Step::Write(offset, bytes) => bytes.len() <= 8 || *offset == 24,
            Step::SetLen(_) => true,
        }
    }

    /// The file after some whole steps and the first `torn` bytes of the next.
    pub fn image(&self, steps: usize, torn: usize) -> Vec<u8> {
        let mut image = Vec::new();
        for (number, step) in self.0.borrow().iter().enumerate().take(steps + 1) {
            match step {
                Step::Write(offset, bytes) => {
                    let bytes = if number < steps {
                        bytes
                    } else {
                        &bytes[..torn]
                    };
                    put(&mut image, *offset as usize, bytes);
                }
                Step::SetLen(len) if number < steps => image.resize(*len as usize, 0),
                Step::SetLen(_) => {}
            }
        }
        image
    }
}

fn put(image: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if !bytes.is_empty() {
        image.resize(image.len().max(end), 0);
        image[at..end].copy_from_slice(bytes);
    }
}
