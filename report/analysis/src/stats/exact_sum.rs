//! Sums of floats that do not depend on the order of what is added.

/// A sum, kept without rounding as floats of which none overlaps another (Shewchuk, 1997), the least first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExactSum {
    parts: Vec<f64>,
    /// Sum of infinities.
    infinite: Option<f64>,
}

impl ExactSum {
    /// Adds a number, which is not NaN.
    pub(crate) fn add(&mut self, number: f64) {
        if number.is_infinite() {
            self.infinite = Some(self.infinite.unwrap_or(0.0) + number);
            return;
        }
        let mut sum = number;
        let mut kept = 0;
        for at in 0..self.parts.len() {
            let part = self.parts[at];
            let (great, small) = if sum.abs() < part.abs() {
                (part, sum)
            } else {
                (sum, part)
            };
            let high = great + small;
            if high.is_infinite() {
                // Beyond what a float can hold.
                self.infinite = Some(self.infinite.unwrap_or(0.0) + high);
                return;
            }
            let low = small - (high - great);
            if low != 0.0 {
                self.parts[kept] = low;
                kept += 1;
            }
            sum = high;
        }
        self.parts.truncate(kept);
        self.parts.push(sum);
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.parts.iter().for_each(|&part| self.add(part));
        if let Some(infinite) = other.infinite {
            self.infinite = Some(self.infinite.unwrap_or(0.0) + infinite);
        }
    }

    /// The sum, rounded once.
    pub(crate) fn sum(&self) -> f64 {
        if let Some(infinite) = self.infinite {
            return infinite;
        }
        let mut parts = self.parts.iter().rev().copied();
        let mut sum = parts.next().unwrap_or(0.0);
        while let Some(part) = parts.next() {
            let high = sum + part;
            let rest = part - (high - sum);
            sum = high;
            if rest != 0.0 {
                // Half-way cases go the way of what is below.
                let below = parts.next().unwrap_or(0.0);
                if (rest < 0.0 && below < 0.0) || (rest > 0.0 && below > 0.0) {
                    let twice = rest * 2.0;
                    if (sum + twice) - sum == twice {
                        sum += twice;
                    }
                }
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter() {
        let numbers: Vec<f64> = (1..2000_i32)
            .map(|at| f64::from(at).sqrt() * 10_f64.powi(at % 40 - 20) * f64::from(1 - at % 2 * 2))
            .collect();
        let sum = |numbers: &mut dyn Iterator<Item = f64>| {
            let mut sum = ExactSum::default();
            numbers.for_each(|number| sum.add(number));
            sum
        };
        let forward = sum(&mut numbers.iter().copied());
        let mut halves = sum(&mut numbers.iter().rev().step_by(2).copied());
        halves.merge(&sum(&mut numbers.iter().rev().skip(1).step_by(2).copied()));
        assert_eq!(forward.sum().to_bits(), halves.sum().to_bits());
        let mut cancels = ExactSum::default();
        [1e300, 1.0, -1e300]
            .into_iter()
            .for_each(|number| cancels.add(number));
        assert_eq!(cancels.sum(), 1.0);
    }
}
