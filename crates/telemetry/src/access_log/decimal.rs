//! Whole numbers as digits, three at a time.
//!
//! Invariant: no leading zeros unless a width was asked for; every `u64` fits.
//! Not here: which numbers a line holds (`line`).

/// The three digits of each number below 1000, and how many zeros lead them before the last.
static TRIPLES: [[u8; 4]; 1000] = {
    let mut triples = [[0; 4]; 1000];
    let mut n = 0;
    while n < 1000 {
        let [a, b, c] = [n / 100, n / 10 % 10, n % 10];
        let zeros = (n < 100) as u8 + (n < 10) as u8;
        triples[n] = [b'0' + a as u8, b'0' + b as u8, b'0' + c as u8, zeros];
        n += 1;
    }
    triples
};

/// Appends `value`.
pub(super) fn decimal(out: &mut Vec<u8>, value: u64) {
    match u32::try_from(value) {
        Ok(small @ ..1000) => trimmed(out, small),
        Ok(middling @ ..1_000_000) => {
            trimmed(out, middling / 1000);
            out.extend_from_slice(&three(middling % 1000));
        }
        Ok(_) | Err(_) => {
            decimal(out, value / 1000);
            out.extend_from_slice(&three((value % 1000) as u32));
        }
    }
}

/// A number below 1000: the zeros shifted out, and what follows the digits cut off.
fn trimmed(out: &mut Vec<u8>, value: u32) {
    let [a, b, c, zeros] = triple(value);
    let digits = u32::from_le_bytes([a, b, c, 0]) >> (8 * zeros);
    out.extend_from_slice(&digits.to_le_bytes());
    out.truncate(out.len() - 1 - usize::from(zeros));
}

/// A number below 10,000 in four digits.
pub(super) fn four(value: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (two(value / 100), two(value % 100));
    [a, b, c, d]
}

/// A number below 1000 in three digits.
pub(super) fn three(value: u32) -> [u8; 3] {
    let [a, b, c, _] = triple(value);
    [a, b, c]
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
