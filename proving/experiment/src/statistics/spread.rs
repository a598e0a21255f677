//! The median of repetitions with the least and the greatest, as every figure is reported.
//!
//! Invariant: `min <= median <= max`, and all three are finite.
//! Not here: quantiles inside one repetition; those come from a histogram (`load`).

#[cfg(test)]
mod tests;

/// One figure over several repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle value; between two middle values, their mean.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` when no finite value is among them.
    /// Values that are not finite are left out.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self {
            median: f64::midpoint(lower, upper),
            min,
            max,
        })
    }
}
