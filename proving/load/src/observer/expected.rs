//! Whether an answer has the body that was expected, looked at as it comes.
//!
//! Not here: what becomes of one that has not (`hearing`).

/// What of the expected body is still to come.
pub(crate) struct Expected<'a> {
    left: Option<&'a [u8]>,
    differs: bool,
}

impl<'a> Expected<'a> {
    /// Without a body, any is as expected.
    pub(crate) const fn new(body: Option<&'a [u8]>) -> Self {
        Self {
            left: body,
            differs: false,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if let Some(left) = &mut self.left {
            match left.strip_prefix(bytes) {
                Some(rest) => *left = rest,
                None => self.differs = true,
            }
        }
    }

    /// Whether all of it came, and nothing else.
    pub(crate) fn came(&self) -> bool {
        !self.differs && self.left.is_none_or(<[u8]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    //! Bodies in pieces.

    use super::Expected;

    fn came(expected: Option<&[u8]>, pieces: &[&[u8]]) -> bool {
        let mut body = Expected::new(expected);
        pieces.iter().for_each(|piece| body.feed(piece));
        body.came()
    }

    #[test]
    fn a_body_is_as_expected_however_it_is_cut_and_no_other_is() {
        let whole: Option<&[u8]> = Some(b"echo response");
        assert!(came(whole, &[b"echo response"]));
        assert!(came(whole, &[b"e", b"", b"cho resp", b"onse"]));
        for bad in [
            &b"echo respons"[..],
            b"echo responsee",
            b"Echo response",
            b"",
        ] {
            assert!(!came(whole, &[bad]), "{bad:?}");
        }
        assert!(!came(whole, &[b"x", b"echo response"]));
        assert!(came(None, &[b"whatever"]));
    }
}
