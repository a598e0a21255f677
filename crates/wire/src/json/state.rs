//! What a reader of JSON waits for, byte by byte.
//!
//! Invariant: state and nesting are all that a reader must remember of the bytes before.
//! Not here: nesting (`container_stack`), what is done at a place (`scan`, `skip`).

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Start,
    Value,
    FirstElement,
    FirstKey,
    Key,
    Colon,
    After,
    String,
    Escape,
    /// Hexadecimal digits still to come.
    Hex(u8),
    /// The letters still to come, the next one lowest.
    Literal(u32),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl State {
    /// Whether a document may end here, if nothing is open.
    pub(super) fn is_final(self) -> bool {
        matches!(
            self,
            Self::After | Self::Zero | Self::Digits | Self::Fraction | Self::ExponentDigits
        )
    }

    /// How a fault calls what was expected.
    #[cold]
    pub(super) fn wanted(self, in_object: bool) -> &'static str {
        match self {
            Self::Start | Self::Value => "a value",
            Self::FirstElement => "a value or `]`",
            Self::FirstKey => "a member name or `}`",
            Self::Key => "a member name",
            Self::Colon => "`:`",
            Self::String => "the end of a string",
            Self::Escape | Self::Hex(_) => "the rest of an escape",
            Self::Literal(_) => "the rest of `true`, `false` or `null`",
            Self::Minus | Self::Point | Self::Exponent | Self::ExponentSign => "a digit",
            Self::After | Self::Zero | Self::Digits | Self::Fraction | Self::ExponentDigits => {
                if in_object {
                    "`,` or `}`"
                } else {
                    "`,` or `]`"
                }
            }
        }
    }
}

/// Where a byte leads inside a number.
pub(super) enum Next {
    To(State),
    End,
    Fault,
}

#[inline]
pub(super) fn next_in_number(state: State, byte: u8) -> Next {
    match (state, byte) {
        (State::Minus, b'0') => Next::To(State::Zero),
        (State::Minus, b'1'..=b'9') | (State::Digits, b'0'..=b'9') => Next::To(State::Digits),
        (State::Zero | State::Digits, b'.') => Next::To(State::Point),
        (State::Point | State::Fraction, b'0'..=b'9') => Next::To(State::Fraction),
        (State::Zero | State::Digits | State::Fraction, b'e' | b'E') => Next::To(State::Exponent),
        (State::Exponent, b'+' | b'-') => Next::To(State::ExponentSign),
        (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
            Next::To(State::ExponentDigits)
        }
        (State::Zero | State::Digits | State::Fraction | State::ExponentDigits, _) => Next::End,
        _ => Next::Fault,
    }
}
