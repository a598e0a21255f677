//! Decode times measured at some batch sizes and contexts, with straight lines between them.
//!
//! Invariant: between points the value lies between theirs; beyond the outer ones the last line goes on, never
//! below the smallest value.
//! Not here: the line in two variables (`DecodeCost::Line`).

/// Milliseconds of a decode step by number of sequences and their mean context.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeTable {
    sequences: Vec<f64>,
    contexts: Vec<f64>,
    /// One row for each number of sequences.
    ms: Vec<Vec<f64>>,
}

impl DecodeTable {
    /// A table over ascending axes.
    ///
    /// # Errors
    /// Says which axis, row or value is not as it has to be.
    pub fn new(sequences: Vec<f64>, contexts: Vec<f64>, ms: Vec<Vec<f64>>) -> Result<Self, String> {
        for (name, axis) in [("sequences", &sequences), ("contexts", &contexts)] {
            if axis.len() < 2 {
                return Err(format!(
                    "{name}: has {} points and needs at least 2",
                    axis.len()
                ));
            }
            if let Some(i) = axis
                .windows(2)
                .position(|w| w[0].partial_cmp(&w[1]) != Some(std::cmp::Ordering::Less))
            {
                return Err(format!("{name}[{}]: does not rise", i + 1));
            }
        }
        if ms.len() != sequences.len() {
            return Err(format!(
                "ms: has {} rows for {} numbers of sequences",
                ms.len(),
                sequences.len()
            ));
        }
        for (i, row) in ms.iter().enumerate() {
            if row.len() != contexts.len() {
                return Err(format!(
                    "ms[{i}]: has {} values for {} contexts",
                    row.len(),
                    contexts.len()
                ));
            }
            for (j, &value) in row.iter().enumerate() {
                let above = if i > 0 { ms[i - 1][j] } else { 0.0 };
                let left = if j > 0 { row[j - 1] } else { 0.0 };
                if !value.is_finite() || value < above || value < left {
                    return Err(format!("ms[{i}][{j}]: {value} is less than for less work"));
                }
            }
        }
        Ok(Self {
            sequences,
            contexts,
            ms,
        })
    }

    /// Axes and rows, as given.
    pub(crate) fn parts(&self) -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
        (
            self.sequences.clone(),
            self.contexts.clone(),
            self.ms.clone(),
        )
    }

    pub(super) fn least_ms(&self) -> f64 {
        self.ms[0][0]
    }

    pub(super) fn ms(&self, sequences: f64, context: f64) -> f64 {
        let (i, down) = place(&self.sequences, sequences);
        let (j, right) = place(&self.contexts, context);
        let row = |i: usize| between(self.ms[i][j], self.ms[i][j + 1], right);
        between(row(i), row(i + 1), down).max(self.least_ms())
    }
}

/// The stretch of the axis to use, and how far along it the value lies (outside 0 to 1 beyond the ends).
fn place(axis: &[f64], value: f64) -> (usize, f64) {
    let i = axis
        .partition_point(|&point| point <= value)
        .clamp(1, axis.len() - 1)
        - 1;
    (i, (value - axis[i]) / (axis[i + 1] - axis[i]))
}

fn between(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}
