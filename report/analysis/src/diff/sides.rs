//! A pair of values of the same kind: one of each recording.

/// A value of recording A and the same one of recording B.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sides<T> {
    /// The value of recording A.
    pub a: T,
    /// The value of recording B.
    pub b: T,
}

impl<T> Sides<T> {
    /// Converts both values.
    pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> Sides<U> {
        Sides {
            a: of(self.a),
            b: of(self.b),
        }
    }

    /// References to both values.
    pub(crate) const fn each(&self) -> Sides<&T> {
        Sides {
            a: &self.a,
            b: &self.b,
        }
    }

    /// Whether something is true of at least one side.
    pub(crate) fn any(self, mut of: impl FnMut(T) -> bool) -> bool {
        of(self.a) || of(self.b)
    }
}

impl<T> Sides<Option<T>> {
    /// `None` unless both sides have it.
    pub(crate) fn both(self) -> Option<Sides<T>> {
        Some(Sides {
            a: self.a?,
            b: self.b?,
        })
    }
}
