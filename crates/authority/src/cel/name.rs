//! Names that are not known, and the known ones that were probably meant.

/// What people call the facts elsewhere.
const ALIASES: [(&str, &str); 14] = [
    ("address", "source"),
    ("client", "workload"),
    ("client_ip", "source"),
    ("group", "claims.groups"),
    ("groups", "claims.groups"),
    ("ip", "source"),
    ("jwt", "claims"),
    ("now", "time"),
    ("principal", "workload"),
    ("provider", "backends"),
    ("request", "method, path or operation"),
    ("token", "claims"),
    ("url", "path"),
    ("backend", "backends"),
];

/// What a fault says of a name that is none.
pub(super) fn unknown<'k>(
    what: &str,
    written: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> String {
    let alias = ALIASES.iter().find(|(name, _)| *name == written);
    let near = alias.map(|(_, meant)| *meant);
    match near.or_else(|| nearest(written, known.clone())) {
        Some(near) => format!("there is no {what} {written}; did you mean {near}?"),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            format!("there is no {what} {written}; there are {}", all.join(", "))
        }
    }
}

/// The known name that one is a slip of: a third of its letters may be wrong.
pub(super) fn nearest<'k>(
    written: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let wrong = |name: &'k str| (slips(written, name), name);
    let most = (written.chars().count() / 3).clamp(1, 3);
    let near = known.into_iter().map(wrong).min()?;
    (near.0 <= most).then_some(near.1)
}

/// How many letters have to be put in, left out or changed; their case counts nothing.
fn slips(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 64;
    let letters = |text: &str| -> Vec<char> {
        text.chars()
            .flat_map(char::to_lowercase)
            .take(LETTERS_MAX)
            .collect()
    };
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, x) in a.iter().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let change = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = change.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
