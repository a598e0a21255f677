//! Numbers that are not written as Python writes them.
//!
//! Not here: how numbers are written (`python`).

use super::Tree;

impl Tree<'_> {
    /// Whether some number in here cannot have been read as Python reads it: `-0`, which is no whole number here, and
    /// whole numbers beyond 64 bits, whose last digits are lost.
    #[must_use]
    pub fn has_wide_number(&self) -> bool {
        self.has_float(&|float| {
            (float == 0.0 && float.is_sign_negative())
                || (float.fract() == 0.0 && float.abs() >= 9_223_372_036_854_775_808.0)
        })
    }

    /// Whether some number in here is one that Python writes with an exponent.
    #[must_use]
    pub fn has_scientific_number(&self) -> bool {
        self.has_float(&|float| float != 0.0 && !(1e-4..1e16).contains(&float.abs()))
    }

    fn has_float(&self, is_odd: &impl Fn(f64) -> bool) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Text(_) => false,
            Self::Number(number) => number.is_f64() && number.as_f64().is_some_and(is_odd),
            Self::List(items) => items.iter().any(|item| item.has_float(is_odd)),
            Self::Map(members) => members.iter().any(|(_, member)| member.has_float(is_odd)),
        }
    }
}
