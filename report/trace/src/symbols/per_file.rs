//! Something of each of a trace's files that is read when first needed.

use std::sync::OnceLock;

use crate::process::{Dso, DsoId};

/// A value of each file, made when first needed.
#[derive(Debug)]
pub(crate) struct PerFile<T> {
    files: Vec<Dso>,
    values: Vec<OnceLock<T>>,
}

impl<T> PerFile<T> {
    pub(crate) fn new(files: &[Dso]) -> Self {
        Self {
            files: files.to_vec(),
            values: files.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The value of a file, made by `make` if it is the first time. `None` if there is no such file.
    pub(crate) fn get(&self, file: DsoId, make: impl FnOnce(&Dso) -> T) -> Option<&T> {
        let at = file.0 as usize;
        let (file, value) = (self.files.get(at)?, self.values.get(at)?);
        Some(value.get_or_init(|| make(file)))
    }

    /// The value of a file, if it was made.
    pub(crate) fn known(&self, file: DsoId) -> Option<&T> {
        self.values.get(file.0 as usize)?.get()
    }

    /// A file.
    pub(crate) fn file(&self, file: DsoId) -> Option<&Dso> {
        self.files.get(file.0 as usize)
    }

    /// Appends files to those that are known.
    pub(crate) fn extend(&mut self, files: &[Dso]) {
        let new = files.get(self.files.len()..).unwrap_or_default();
        self.files.extend_from_slice(new);
        self.values.extend(new.iter().map(|_| OnceLock::new()));
    }

    /// Keeps these files alone, in this order.
    pub(crate) fn keep(&mut self, files: &[DsoId]) {
        let all = std::mem::take(&mut self.files);
        let mut values = std::mem::take(&mut self.values);
        for id in files {
            let at = id.0 as usize;
            if let (Some(file), Some(value)) = (all.get(at), values.get_mut(at)) {
                self.files.push(file.clone());
                self.values.push(std::mem::take(value));
            }
        }
    }
}
