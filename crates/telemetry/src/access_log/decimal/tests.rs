//! Digits agree with the standard library's.

use super::{digits, four, padded, two};

#[test]
fn no_zero_leads_the_digits_of_a_number() {
    for value in 0..1000 {
        let (digits, len) = digits(value);
        assert_eq!(digits[..len], *value.to_string().as_bytes());
    }
}

#[test]
fn fixed_widths_are_padded() {
    for value in 0..10_000 {
        assert_eq!(four(value), *format!("{value:04}").as_bytes());
    }
    for value in 0..1000 {
        assert_eq!(padded(value), *format!("{value:03}").as_bytes());
    }
    for value in 0..100 {
        assert_eq!(two(value), *format!("{value:02}").as_bytes());
    }
}
