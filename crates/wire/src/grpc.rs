//! A message as gRPC frames it: whether it is compressed, in one byte, its length in four, and its bytes.
//!
//! Invariant: what `framed` made, `only_message` takes apart; what is compressed, cut or followed by more it refuses.
//! Not here: the status, which is a header or a trailer (who asks), the messages themselves.

/// Bytes before a message.
const FRAME: usize = 5;

/// A message, not compressed; `None` where its length fits no frame.
#[must_use]
pub fn framed(message: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(message.len()).ok()?;
    Some([&[0], &length.to_be_bytes()[..], message].concat())
}

/// The message of a body that holds one and nothing else.
///
/// # Errors
/// Why it does not.
pub fn only_message(body: &[u8]) -> Result<&[u8], &'static str> {
    let (frame, message) = body.split_at_checked(FRAME).ok_or("it holds no message")?;
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    if frame != [&[0], &length.to_be_bytes()[..]].concat() {
        return Err("it is compressed, or not one message");
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::{framed, only_message};

    #[test]
    fn a_message_is_found_in_its_frame_and_in_no_other() {
        for message in [&b""[..], b"a", &[7; 70_000]] {
            let body = framed(message).expect("it is short");
            assert_eq!(only_message(&body), Ok(message));
            let more = [&body[..], b"x"].concat();
            assert!(only_message(&more).is_err_and(|why| why.contains("not one")));
            let cut = body.get(..body.len() - 1).expect("it has a frame");
            assert!(only_message(cut).is_err());
        }
        let compressed = [1, 0, 0, 0, 1, 7];
        assert!(only_message(&compressed).is_err_and(|why| why.contains("compressed")));
    }
}
