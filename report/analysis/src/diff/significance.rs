//! Significance level and critical values.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Steps of a degree of freedom in which values are known.
const STEPS: f64 = 4.0;
/// Degrees of freedom up to which they are: more than two recordings have together.
const MAX_DEGREES: usize = 48;

/// A significance level, 0 to 1, of two-sided tests, with its critical values.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) each: f64,
    normal: f64,
    /// By degrees of freedom, in steps, from one degree on.
    student: Vec<f64>,
}

impl Level {
    pub(crate) fn new(each: f64) -> Self {
        let steps = STEPS as usize;
        let student = (steps..=MAX_DEGREES * steps).map(|step| {
            let freedom = step as f64 / STEPS;
            let student = StudentsT::new(0.0, 1.0, freedom);
            student.map_or(f64::INFINITY, |student| -student.inverse_cdf(each / 2.0))
        });
        let normal = Normal::new(0.0, 1.0);
        Self {
            each,
            normal: normal.map_or(f64::INFINITY, |normal| -normal.inverse_cdf(each / 2.0)),
            student: student.collect(),
        }
    }

    /// What a normal variable exceeds.
    pub(crate) const fn normal(&self) -> f64 {
        self.normal
    }

    /// What Student's t exceeds, with so many degrees of freedom or a little fewer; with more than two recordings have, the normal value.
    pub(crate) fn student(&self, freedom: f64) -> f64 {
        let step = ((freedom - 1.0) * STEPS).max(0.0) as usize;
        self.student.get(step).copied().unwrap_or(self.normal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_tables() {
        for (each, freedom, value) in [
            (0.05, 19.1, 2.093),
            (0.01, 1.0, 63.657),
            (0.001, 38.0, 3.566),
        ] {
            let found = Level::new(each).student(freedom);
            assert!((found - value).abs() < 1e-3, "{found} {value}");
        }
        let level = Level::new(1e-7);
        assert!((Level::new(0.05).normal() - 1.96).abs() < 1e-3);
        assert!(level.student(1.0).is_finite() && level.student(0.3) == level.student(1.0));
        assert_eq!(level.student(f64::INFINITY), level.normal());
    }
}
