//! Whole numbers as digits, three at a time.
//!
//! Invariant: no leading zeros unless a width was asked for.
//! Not here: which numbers a line holds (`line`), longer numbers (`json_writer`).

/// The three digits of each number below 1000, and how many bits of them are leading zeros.
static TRIPLES: [[u8; 4]; 1000] = {
    let mut triples = [[0; 4]; 1000];
    let mut n = 0;
    while n < 1000 {
        let [a, b, c] = [n / 100, n / 10 % 10, n % 10];
        let zeros = (n < 100) as u8 + (n < 10) as u8;
        triples[n] = [b'0' + a as u8, b'0' + b as u8, b'0' + c as u8, 8 * zeros];
        n += 1;
    }
    triples
};

/// The digits of a number below 1000, and how many they are. What follows them is not text.
pub(super) fn digits(value: u32) -> ([u8; 4], usize) {
    let [a, b, c, zeros] = triple(value);
    let text = u32::from_le_bytes([a, b, c, zeros]) >> zeros;
    (text.to_le_bytes(), 3 - usize::from(zeros / 8))
}

/// A number below 1000 in three digits.
pub(super) fn padded(value: u32) -> [u8; 3] {
    let [a, b, c, _] = triple(value);
    [a, b, c]
}

/// A number below 10,000 in four digits.
pub(super) fn four(value: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (two(value / 100), two(value % 100));
    [a, b, c, d]
}

/// A number below 100 in two digits.
pub(super) fn two(value: u32) -> [u8; 2] {
    let [_, a, b, _] = triple(value);
    [a, b]
}

fn triple(value: u32) -> [u8; 4] {
    TRIPLES.get(value as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
