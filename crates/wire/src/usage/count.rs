//! One count of a report, as it was written.
//!
//! Not here: which member it stands under (`read`), what it is held against (`judge`).

use super::TOKEN_LIMIT;
use crate::json::{Kind, Reader};

/// A count as it was reported: a number up to [`Count::MOST`], or one of two marks beyond it, for what is not
/// there or null and for what cannot be a count. In one word, as a report has twenty-five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);
impl Count {
    pub(super) const ABSENT: Self = Self(u64::MAX);
    pub(super) const IMPOSSIBLE: Self = Self(u64::MAX - 1);
    /// What a ledger can hold is kept, be it beyond [`TOKEN_LIMIT`].
    const MOST: u64 = i64::MAX.unsigned_abs();

    /// `None` where the text is not JSON.
    #[inline]
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.short_count() {
            Some(tokens) => Some(Self(tokens.into())),
            None => Self::read_other(reader),
        }
    }

    #[inline(never)]
    fn read_other(reader: &mut Reader<'_>) -> Option<Self> {
        reader.value().map(Self::of_value)
    }

    pub(super) fn of_value(value: (Kind, &[u8])) -> Self {
        match value {
            (Kind::Null, _) => Self::ABSENT,
            (Kind::Number, number) | (Kind::String, [b'"', number @ .., b'"']) => Self::of(number),
            _ => Self::IMPOSSIBLE,
        }
    }

    /// A whole number, however it is written: `7`, `7.0`, `70e-1`.
    fn of(number: &[u8]) -> Self {
        match whole(number) {
            Some(tokens @ ..=Self::MOST) => Self(tokens),
            Some(_) | None => Self::IMPOSSIBLE,
        }
    }

    #[inline]
    pub(super) fn tokens(self) -> Option<u64> {
        self.is_readable().then_some(self.0)
    }

    #[inline]
    pub(super) const fn is_readable(self) -> bool {
        self.0 <= TOKEN_LIMIT
    }

    pub(super) const fn said(self) -> Option<u64> {
        match self {
            Self(number @ ..=Self::MOST) => Some(number),
            Self(_) => None,
        }
    }
}
/// The value of a JSON number that is whole and not negative.
fn whole(number: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(number).ok()?;
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (is_negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (true, mantissa),
        None => (false, mantissa),
    };
    let (digits, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some((digits, fraction)) => (digits, fraction),
        None => (mantissa, ""),
    };
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let kept = fraction.trim_end_matches('0');
    let mut value = 0_u64;
    for digit in digits.bytes().chain(kept.bytes()) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    if value == 0 || is_negative {
        return (value == 0).then_some(0);
    }
    let shift = exponent.checked_sub(i32::try_from(kept.len()).ok()?)?;
    let factor = 10_u64.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        return value.checked_mul(factor?);
    }
    let factor = factor?;
    value.is_multiple_of(factor).then_some(value / factor)
}
