//! Digits agree with the standard library's.

use super::{decimal, four, three, two};

fn text(value: u64) -> String {
    let mut out = b"kept".to_vec();
    decimal(&mut out, value);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("kept").unwrap().to_owned()
}

#[test]
fn every_number_of_up_to_five_digits() {
    for value in 0..100_000 {
        assert_eq!(text(value), value.to_string());
    }
}

#[test]
fn every_length_and_the_largest() {
    let mut power = 1_u64;
    loop {
        for value in [power - 1, power, power + 1, power.saturating_mul(7)] {
            assert_eq!(text(value), value.to_string());
        }
        let Some(next) = power.checked_mul(10) else {
            break;
        };
        power = next;
    }
    assert_eq!(text(u64::MAX), u64::MAX.to_string());
}

#[test]
fn fixed_widths_are_padded() {
    for value in 0..10_000 {
        assert_eq!(four(value), *format!("{value:04}").as_bytes());
    }
    for value in 0..1000 {
        assert_eq!(three(value), *format!("{value:03}").as_bytes());
    }
    for value in 0..100 {
        assert_eq!(two(value), *format!("{value:02}").as_bytes());
    }
}
