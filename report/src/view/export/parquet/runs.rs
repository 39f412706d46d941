//! Numbers of rows, of which equal neighbours are one run.

/// The number of a row without a value.
pub(crate) const NULL: u32 = u32::MAX;

/// Rows one after the other that have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) number: u32,
    pub(crate) count: u32,
}

/// The numbers of all rows of a row group. Most columns of a trace (thread, CPU, file, reasons why values are missing) are few runs.
#[derive(Debug)]
pub(crate) struct Runs {
    closed: Vec<Run>,
    /// Rows of the closed runs.
    rows: usize,
    /// The last run, which may go on.
    open: Run,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            closed: Vec::new(),
            rows: 0,
            open: Run::NONE,
        }
    }
}

impl Run {
    const NONE: Self = Self {
        number: NULL,
        count: 0,
    };
}

impl Runs {
    #[inline]
    pub(crate) fn push(&mut self, number: u32) {
        self.put(Run { number, count: 1 });
    }

    #[inline]
    pub(crate) fn put(&mut self, run: Run) {
        if run.number == self.open.number {
            self.open.count += run.count;
            return;
        }
        if self.open.count > 0 {
            self.rows += self.open.count as usize;
            self.closed.push(self.open);
        }
        self.open = run;
    }

    /// Appends rows without a value until there are so many rows.
    #[inline]
    pub(crate) fn pad(&mut self, rows: usize) {
        while self.rows() < rows {
            self.push(NULL);
        }
    }

    /// Number of rows.
    #[inline]
    pub(crate) const fn rows(&self) -> usize {
        self.rows + self.open.count as usize
    }

    /// Number of rows without a value.
    pub(crate) fn nulls(&self) -> usize {
        let nulls = self.iter().filter(|run| run.number == NULL);
        nulls.map(|run| run.count as usize).sum()
    }

    /// The runs; neighbours have different numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> {
        let open = Some(self.open).filter(|run| run.count > 0);
        self.closed.iter().copied().chain(open)
    }

    /// Gives all rows with a value the number 0.
    pub(crate) fn forget_numbers(&mut self) {
        for Run { number, count } in std::mem::take(self).iter() {
            let number = if number == NULL { NULL } else { 0 };
            self.put(Run { number, count });
        }
    }

    /// Of each row 1 if it has a value, else 0.
    pub(crate) fn levels(&self) -> Vec<i16> {
        let mut levels = Vec::with_capacity(self.rows());
        for run in self.iter() {
            let level = i16::from(run.number != NULL);
            levels.resize(levels.len() + run.count as usize, level);
        }
        levels
    }

    /// Empties it; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.closed.clear();
        self.rows = 0;
        self.open = Run::NONE;
    }

    /// Bytes of runs.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.closed.as_slice())
    }

    /// Bytes in memory.
    pub(crate) const fn memory(&self) -> usize {
        self.closed.capacity() * size_of::<Run>()
    }
}
