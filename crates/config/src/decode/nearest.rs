//! Which known name a typing error was meant to be.

/// The known name that a typing error could have made into `written`.
#[must_use]
pub fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    if written.len() > 64 {
        return None;
    }
    // Letters' case and the kind of a dash are slips that count for nothing.
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let written = plain(written);
    known
        .iter()
        .map(|name| (distance(&written, &plain(name)), *name))
        .filter(|(distance, name)| *distance <= 2 && *distance * 2 < name.len().max(3))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.bytes().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != y))
                .min(left + 1)
                .min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
