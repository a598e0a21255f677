//! Where a client takes streams up again: the ids of the gate's events, of the servers' own.
//!
//! A stream of many servers has a place in the stream of each, and an id of it says all of them, so that nobody has to keep it.
//! Invariant: an id that the gate did not write in this session is none: nobody reads on in the stream of somebody else.
//! Not here: what is sent after a place (the servers), the key of marks (`session`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::session::{MARK_BYTES, Sealer};

/// Longest id of a server's event that is kept; one that is longer is left out, and its stream cannot be taken up there.
pub const EVENT_ID_BYTES_MAX: usize = 512;
/// Longest id of a request that is kept; the answer to one that has a longer id is not taken up again.
pub const REQUEST_ID_BYTES_MAX: usize = 512;
/// Longest id of the gate's that is looked at.
const ID_BYTES_MAX: usize = 48 << 10;

/// Whose events a stream has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// One server's, in answer to the request with this id, as written.
    Call(Box<[u8]>),
    /// All servers', outside calls.
    Session,
}

/// A place in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose events it has.
    pub of: Of,
    /// Each server with the id of its last event, as that server wrote it.
    pub last: Vec<(Box<str>, Box<str>)>,
}

impl Place {
    /// The beginning of a stream.
    #[must_use]
    pub const fn new(of: Of) -> Self {
        Self {
            of,
            last: Vec::new(),
        }
    }

    /// The id of the request that is answered, where it is a call's.
    #[must_use]
    pub fn request(&self) -> Option<&[u8]> {
        match &self.of {
            Of::Call(id) => Some(id),
            Of::Session => None,
        }
    }

    /// The id of the server's last event.
    #[must_use]
    pub fn of_server(&self, server: &str) -> Option<&str> {
        let mut last = self.last.iter();
        last.find_map(|(name, id)| (**name == *server).then_some(&**id))
    }

    /// A server's event has this id; false where it is none that can be sent back.
    pub fn move_to(&mut self, server: &str, id: &[u8]) -> bool {
        let is_sendable =
            (1..=EVENT_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic);
        let Some(id) = std::str::from_utf8(id).ok().filter(|_| is_sendable) else {
            return false;
        };
        match self.last.iter_mut().find(|(name, _)| **name == *server) {
            Some((_, last)) => *last = id.into(),
            None => self.last.push((server.into(), id.into())),
        }
        true
    }

    /// The id of an event at this place, in the session with this id.
    #[must_use]
    pub fn write(&self, sealer: &Sealer, session: &[u8]) -> Option<String> {
        let mut text = Vec::new();
        match &self.of {
            Of::Call(id) if id.len() <= REQUEST_ID_BYTES_MAX => {
                text.push(b'r');
                text.extend(u16::try_from(id.len()).ok()?.to_be_bytes());
                text.extend(&**id);
            }
            Of::Call(_) => return None,
            Of::Session => text.push(b's'),
        }
        for (server, id) in &self.last {
            text.push(u8::try_from(server.len()).ok()?);
            text.extend(server.as_bytes());
            text.extend(u16::try_from(id.len()).ok()?.to_be_bytes());
            text.extend(id.as_bytes());
        }
        let mark = sealer.mark(session, &text);
        text.extend(mark);
        Some(URL_SAFE_NO_PAD.encode(text))
    }

    /// The place that a client names; none where the gate did not name it in this session.
    #[must_use]
    pub fn read(id: &[u8], sealer: &Sealer, session: &[u8]) -> Option<Self> {
        if id.len() > ID_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (text, mark) = bytes.split_at_checked(bytes.len().checked_sub(MARK_BYTES)?)?;
        if !sealer.is_mark(session, text, mark) {
            return None;
        }
        let (of, mut text) = text.split_first()?;
        let mut place = Self::new(match of {
            b'r' => {
                let (length, rest) = text.split_first_chunk()?;
                let (id, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
                text = rest;
                Of::Call(id.into())
            }
            b's' => Of::Session,
            _ => return None,
        });
        while let Some((length, rest)) = text.split_first() {
            let (server, rest) = rest.split_at_checked(usize::from(*length))?;
            let (length, rest) = rest.split_first_chunk()?;
            let (id, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let texts = (
                std::str::from_utf8(server).ok()?,
                std::str::from_utf8(id).ok()?,
            );
            place.last.push((texts.0.into(), texts.1.into()));
            text = rest;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    //! Places are found again by those who were told of them.

    use policy::secret::Secret;

    use super::{Of, Place, REQUEST_ID_BYTES_MAX};
    use crate::session::Sealer;

    fn sealer(letter: u8) -> Sealer {
        Sealer::new(&Secret::new(vec![letter; 32]), None).expect("a key")
    }

    #[test]
    fn a_place_is_read_in_the_session_that_it_was_told_in_and_nowhere_else() {
        let mut place = Place::new(Of::Session);
        assert!(place.move_to("a", b"1"));
        assert!(place.move_to("b", b"x~y_0"));
        assert!(place.move_to("a", b"2"));
        for odd in [&b""[..], b"a b", b"a\nb", "é".as_bytes(), &[b'a'; 513]] {
            assert!(!place.move_to("a", odd));
        }
        assert_eq!(
            (place.of_server("a"), place.of_server("c")),
            (Some("2"), None)
        );
        let sealer_a = sealer(b'a');
        let id = place.write(&sealer_a, b"session").expect("an id");
        let read = |id: &[u8], sealer: &Sealer, session: &[u8]| Place::read(id, sealer, session);
        assert_eq!(read(id.as_bytes(), &sealer_a, b"session"), Some(place));
        assert_eq!(read(id.as_bytes(), &sealer_a, b"another"), None);
        assert_eq!(read(id.as_bytes(), &sealer(b'b'), b"session"), None);
        let mut call = Place::new(Of::Call((*b"\"x\"").into()));
        assert!(call.move_to("a", b"1"));
        let of_call = call.write(&sealer_a, b"session").expect("an id");
        let back = read(of_call.as_bytes(), &sealer_a, b"session").expect("a place");
        assert_eq!((back.request(), &back), (Some(&b"\"x\""[..]), &call));
        let long = Place::new(Of::Call([b'1'; REQUEST_ID_BYTES_MAX + 1].into()));
        assert_eq!(long.write(&sealer_a, b"session"), None);
        for at in 0..id.len() {
            let mut other = id.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(read(&other, &sealer_a, b"session"), None, "{at}");
        }
        for id in [&b""[..], b"7", b"AAAA", &[b'A'; 50 << 10]] {
            assert_eq!(read(id, &sealer_a, b"session"), None);
        }
    }
}
