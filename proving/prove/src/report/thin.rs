//! Series with so few points as a page can show.
//!
//! Invariant: the first, the last, the least and the greatest value stay, and a gap stays a gap; what is thin already is
//! as it was, so that a page that is rebuilt from a page is the same page.
//! Not here: the series themselves (`campaign`).

use std::cmp::Ordering;

use crate::report::document::Document;

/// Groups of neighbours, of each of which at most three points stay.
const GROUPS: usize = 100;
/// Points of a series.
pub(super) const MOST: usize = 3 * GROUPS + 2;

/// The same document with thin series.
pub(super) fn thin(document: &Document) -> Document {
    let mut document = document.clone();
    for series in document.series.values_mut() {
        series.points = points(&series.points);
    }
    if let Some(overhead) = &mut document.overhead {
        let all: Vec<_> = overhead.cdf.iter().map(|(x, y)| (*x, Some(*y))).collect();
        let thin = points(&all).into_iter();
        overhead.cdf = thin.filter_map(|(x, y)| Some((x, y?))).collect();
    }
    document
}

fn points(all: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let [first, middle @ .., last] = all else {
        return all.to_vec();
    };
    if all.len() <= MOST {
        return all.to_vec();
    }
    let mut kept = vec![*first];
    for group in middle.chunks(middle.len().div_ceil(GROUPS)) {
        let order = |a: &(f64, Option<f64>), b: &(f64, Option<f64>)| match (a.1, b.1) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => Ordering::Equal,
        };
        let valued = || group.iter().filter(|(_, y)| y.is_some());
        let gap = group.iter().find(|(_, y)| y.is_none());
        let mut some: Vec<_> = valued().min_by(|a, b| order(a, b)).into_iter().collect();
        some.extend(valued().max_by(|a, b| order(a, b)));
        some.extend(gap);
        some.sort_by(|a, b| a.0.total_cmp(&b.0));
        some.dedup();
        kept.extend(some);
    }
    kept.push(*last);
    kept
}

#[cfg(test)]
mod tests;
