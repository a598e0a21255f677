//! A Prometheus histogram: fixed edges, a sum and a count.
//!
//! Invariant: buckets are written cumulative and the last (`+Inf`) equals the count.
//! Not here: which histograms there are (`metrics`).

use std::fmt::Write as _;

pub(crate) const TTFT_S: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
pub(crate) const TOKEN_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
pub(crate) const REQUEST_S: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// Tokens of an engine's step.
pub(crate) const STEP_TOKENS: &[f64] = &[
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
];
/// Choices of a request.
pub(crate) const CHOICES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];

/// 1, 2, 5, 10, 20 and so on up to `most`.
pub(crate) fn up_to(most: usize) -> Vec<f64> {
    let mut edges = Vec::new();
    let mut ten = 1u64;
    loop {
        for edge in [ten, 2 * ten, 5 * ten] {
            if edge > most as u64 {
                return edges;
            }
            edges.push(edge as f64);
        }
        ten *= 10;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    edges: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    pub(crate) fn new(edges: &[f64]) -> Self {
        Self {
            edges: edges.to_vec(),
            counts: vec![0; edges.len()],
            sum: 0.0,
            count: 0,
        }
    }

    /// Adds `times` observations of `value`.
    pub(crate) fn observe(&mut self, value: f64, times: u64) {
        let bucket = self.edges.partition_point(|edge| *edge < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += times;
        }
        self.sum += value * times as f64;
        self.count += times;
    }

    /// Writes its lines; `labels` may be empty.
    pub(crate) fn write(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let of_all = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let mut below = 0;
        for (edge, count) in self.edges.iter().zip(&self.counts) {
            below += count;
            line(
                out,
                format_args!("{name}_bucket{{{labels}{comma}le=\"{edge:?}\"}} {below}"),
            );
        }
        line(
            out,
            format_args!("{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", self.count),
        );
        line(out, format_args!("{name}_count{of_all} {}", self.count));
        line(out, format_args!("{name}_sum{of_all} {:?}", self.sum));
    }
}

/// Writes one exposition line.
pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("writing to a string does not fail");
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_lengths_go_by_one_two_and_five() {
        assert_eq!(up_to(60), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(up_to(131_072).last(), Some(&100_000.0));
    }

    #[test]
    fn an_edge_belongs_to_its_own_bucket_and_buckets_accumulate() {
        let mut h = Histogram::new(&[0.1, 1.0]);
        h.observe(0.1, 2);
        h.observe(0.5, 1);
        h.observe(9.0, 1);
        let mut out = String::new();
        h.write(&mut out, "x", "m=\"a\"");
        assert_eq!(
            out,
            "x_bucket{m=\"a\",le=\"0.1\"} 2\nx_bucket{m=\"a\",le=\"1.0\"} 3\nx_bucket{m=\"a\",le=\"+Inf\"} 4\n\
             x_count{m=\"a\"} 4\nx_sum{m=\"a\"} 9.7\n"
        );
    }
}
