//! The difference of two figures, with its confidence limits.

use crate::diff::sides::Sides;

/// A figure of one recording on the scale on which it is compared, and how far it may be off; `None` where that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Uncertain {
    pub(crate) value: f64,
    pub(crate) below: Option<f64>,
    pub(crate) above: Option<f64>,
}

/// The scale on which two figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DifferenceScale {
    /// That of the figures: what is compared is their difference.
    Linear,
    /// Their logarithms: their ratio.
    Ratio,
}

/// By how much the figure of B is greater, and how far that may be off; `None` where that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) of: Uncertain,
    pub(crate) scale: DifferenceScale,
}

impl DifferenceScale {
    /// A figure on this scale.
    pub(crate) fn of(self, figure: f64) -> f64 {
        match self {
            Self::Linear => figure,
            Self::Ratio => figure.ln(),
        }
    }

    /// The figure at some point of it.
    pub(crate) fn figure(self, at: f64) -> f64 {
        match self {
            Self::Linear => at,
            Self::Ratio => at.exp(),
        }
    }
}

impl Difference {
    /// Of figures that were estimated independently, by the method of variance estimates recovery (MOVER): limits of both differences are at the square
    /// root of the sum of squares. What is less than `least` is not known.
    pub(crate) fn recovered(figures: Sides<Uncertain>, scale: DifferenceScale, least: f64) -> Self {
        let Sides { a, b } = figures;
        let both = |one: Option<f64>, other: Option<f64>| Some(one?.hypot(other?).max(least));
        Self {
            of: Uncertain {
                value: b.value - a.value,
                below: both(a.above, b.below),
                above: both(a.below, b.above),
            },
            scale,
        }
    }

    /// How far a difference on this side of 0 could be by noise; `None` where that is not known.
    pub(crate) fn reach(&self) -> Option<f64> {
        match self.of.value >= 0.0 {
            true => self.of.below,
            false => self.of.above,
        }
    }

    /// The difference from A's figure at some point of the scale.
    pub(crate) fn from(&self, a: f64, at: f64) -> f64 {
        match self.scale {
            DifferenceScale::Linear => at,
            DifferenceScale::Ratio => a * at.exp_m1(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_recovered_from_both() {
        let figure = |value, below, above| Uncertain {
            value,
            below: Some(below),
            above,
        };
        let (a, b) = (figure(1.0, 9.0, Some(3.0)), figure(11.0, 4.0, None));
        let found = Difference::recovered(Sides { a, b }, DifferenceScale::Linear, 0.0);
        assert_eq!(found.of, figure(10.0, 5.0, None));
        assert_eq!(found.reach(), Some(5.0));
        let found = Difference::recovered(Sides { a: b, b: a }, DifferenceScale::Linear, 6.0);
        assert_eq!((found.reach(), found.of.below), (Some(6.0), None));
    }

    #[test]
    fn a_ratio_is_a_difference_of_the_first_figure() {
        let of = Uncertain {
            value: 2f64.ln(),
            below: Some(1.5f64.ln()),
            above: Some(0.0),
        };
        let found = Difference {
            of,
            scale: DifferenceScale::Ratio,
        };
        assert!((found.from(100.0, of.value) - 100.0).abs() < 1e-9);
        assert_eq!(
            DifferenceScale::Ratio.figure(DifferenceScale::Ratio.of(1.0)),
            1.0
        );
    }
}
