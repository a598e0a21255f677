//! What a server wants to hear again when a request is made once more (`requestState`), sealed on its way through the client.
//!
//! Invariant: a state is good for the caller, the route and the very request that it was given for, and for an hour: nobody brings
//! it to another tool, and no server hears a state that it did not give. The id of a task is good for its caller and route, as long as a
//! session is.
//! Not here: where it stands in messages (`bridge`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, Nonce};
use ring::hmac;
use zeroize::Zeroizing;

use super::{MARK_BYTES, NONCE_BYTES, Place, Principal, Sealer, TAG_BYTES, bound};
use crate::events::STATE_BYTES_MAX;

/// How long a state is good, seconds: a person may have to be asked.
pub const STATE_GOOD_S: u64 = 3600;
/// Longest one that is looked at: in base64, with what is sealed beside it.
const SEALED_BYTES_MAX: usize = STATE_BYTES_MAX / 3 * 4 + 128;
/// The form of what is sealed. No session has it.
const FORM: u8 = b's';
/// What binds the ids of tasks, and no state.
const TASK_FORM: u8 = b't';

/// What a state is for: a caller's request on a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateOf {
    bound: Vec<u8>,
    good_s: u64,
}

impl StateOf {
    /// Of a method, and the whole name of what it names, which says the server.
    #[must_use]
    pub fn new(method: &str, named: &str, place: &Place, who: &Principal<'_>) -> Self {
        let mut bound = bound(FORM, place, who);
        for part in [method, named] {
            bound.extend((part.len() as u64).to_be_bytes());
            bound.extend(part.as_bytes());
        }
        Self {
            bound,
            good_s: STATE_GOOD_S,
        }
    }

    /// Of the tasks of a caller on a route, good for so many seconds.
    #[must_use]
    pub fn of_tasks(place: &Place, who: &Principal<'_>, good_s: u64) -> Self {
        let bound = bound(TASK_FORM, place, who);
        Self { bound, good_s }
    }
}

impl Sealer {
    /// Seals a state; none where it is too long. The nonce must be of good chance, and another one each time.
    #[must_use]
    pub fn seal_state(
        &self,
        state: &str,
        of: &StateOf,
        unix_s: u64,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<String> {
        if state.len() > STATE_BYTES_MAX {
            return None;
        }
        let mut bytes = Zeroizing::new(vec![FORM]);
        bytes.extend(nonce);
        bytes.extend(unix_s.saturating_add(of.good_s).to_be_bytes());
        bytes.extend(state.as_bytes());
        let (_, within) = bytes.split_at_mut(1 + NONCE_BYTES);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let bound = Aad::from(&of.bound);
        let tag = self.states.seal_in_place_separate_tag(nonce, bound, within);
        bytes.extend(tag.ok()?.as_ref());
        Some(URL_SAFE_NO_PAD.encode(&*bytes))
    }

    /// The state that this is, for this caller and request.
    #[must_use]
    pub fn open_state(&self, sealed: &str, of: &StateOf, unix_s: u64) -> Option<String> {
        if sealed.len() > SEALED_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let within = bytes.strip_prefix(&[FORM])?;
        let (nonce, within) = within
            .split_first_chunk::<NONCE_BYTES>()
            .filter(|(_, within)| within.len() >= TAG_BYTES)?;
        let keys = [Some(&self.states), self.states_before.as_ref()];
        let mut opened = keys.into_iter().flatten().filter_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut within = Zeroizing::new(within.to_vec());
            let text = key.open_in_place(nonce, Aad::from(&of.bound), &mut within);
            let (until, state) = text.ok()?.split_first_chunk()?;
            let state = String::from_utf8(state.to_vec()).ok()?;
            Some((u64::from_be_bytes(*until), state))
        });
        let (until, state) = opened.next()?;
        (unix_s < until).then_some(state)
    }

    /// What tells what a caller without a session has open at a server from all else that is open; `own`: with a token of its own.
    #[must_use]
    pub fn mark_of_caller(
        &self,
        place: &Place,
        who: &Principal<'_>,
        server: &str,
        own: &[u8],
    ) -> [u8; MARK_BYTES] {
        let mut signing = hmac::Context::with_key(&self.marking);
        signing.update(&bound(b'c', place, who));
        signing.update(server.as_bytes());
        if !own.is_empty() {
            // No name has that.
            signing.update(b"\0");
            signing.update(own);
        }
        let mut mark = [0; MARK_BYTES];
        for (to, from) in mark.iter_mut().zip(signing.sign().as_ref()) {
            *to = *from;
        }
        mark
    }
}

#[cfg(test)]
mod tests {
    //! What a server gave is heard again by that server alone, and for the same request.

    use policy::secret::Secret;

    use super::{STATE_GOOD_S, StateOf};
    use crate::session::{Place, Principal, Sealer};

    const NOW: u64 = 1_700_000_000;

    fn who<'p>(workload: &'p str, user: Option<&'p str>) -> Principal<'p> {
        Principal {
            workload,
            by: "token",
            issuer: None,
            key: None,
            user,
            tokens: None,
        }
    }

    #[test]
    fn a_state_is_good_for_its_caller_and_its_request_for_an_hour() {
        let sealer = |byte, before: Option<u8>| {
            let secret = |byte: u8| Secret::new(vec![byte; 32]);
            let before = before.map(secret);
            Sealer::new(&secret(byte), before.as_ref()).expect("keys")
        };
        let (here, there) = (
            Place::new("a", [("one", "x/mcp".to_owned())].into_iter()),
            Place::new("b", [("one", "x/mcp".to_owned())].into_iter()),
        );
        let ada = who("ide", Some("ada"));
        let call = ("tools/call", "one__read");
        let of = |(method, named): (&str, &str), place: &Place, who: &Principal<'_>| {
            StateOf::new(method, named, place, who)
        };
        let sealed = sealer(1, None)
            .seal_state("step 2 of ada's", &of(call, &here, &ada), NOW, [7; 12])
            .expect("it fits");
        let open = |sealer: &Sealer, sealed: &str, call, place, who: &Principal<'_>, now| {
            sealer.open_state(sealed, &of(call, place, who), now)
        };
        let good = Some("step 2 of ada's".to_owned());
        let own = sealer(1, None);
        assert_eq!(open(&own, &sealed, call, &here, &ada, NOW), good);
        let last = NOW + STATE_GOOD_S - 1;
        assert_eq!(open(&own, &sealed, call, &here, &ada, last), good);
        assert_eq!(open(&own, &sealed, call, &here, &ada, last + 1), None);
        assert_eq!(
            open(&sealer(2, Some(1)), &sealed, call, &here, &ada, NOW),
            good
        );
        assert_eq!(
            open(&sealer(2, None), &sealed, call, &here, &ada, NOW),
            None
        );
        for other in [
            ("tools/call", "one__delete"),
            ("tools/call", "two__read"),
            ("prompts/get", "one__read"),
        ] {
            assert_eq!(
                open(&own, &sealed, other, &here, &ada, NOW),
                None,
                "{other:?}"
            );
        }
        assert_eq!(open(&own, &sealed, call, &there, &ada, NOW), None);
        for other in [
            who("ide", Some("ben")),
            who("ide", None),
            who("cli", Some("ada")),
        ] {
            assert_eq!(
                open(&own, &sealed, call, &here, &other, NOW),
                None,
                "{other:?}"
            );
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("text");
            assert_eq!(open(&own, &changed, call, &here, &ada, NOW), None, "{at}");
        }
        for none in ["", "A", "step 2 of ada's", &"A".repeat(3 << 20)] {
            assert_eq!(open(&own, none, call, &here, &ada, NOW), None);
        }
        let long = "x".repeat((1 << 20) + 1);
        assert_eq!(
            own.seal_state(&long, &of(call, &here, &ada), NOW, [7; 12]),
            None
        );
    }

    #[test]
    fn the_id_of_a_task_is_its_callers_on_its_route_as_long_as_is_said_and_no_state() {
        let own = Sealer::new(&Secret::new(vec![1; 32]), None).expect("keys");
        let place = |route| Place::new(route, [("one", "x/mcp".to_owned())].into_iter());
        let ada = who("ide", Some("ada"));
        let of = StateOf::of_tasks(&place("a"), &ada, 86_400);
        let sealed = own.seal_state("task", &of, NOW, [7; 12]).expect("it fits");
        let open = |of: &StateOf, now| own.open_state(&sealed, of, now);
        assert_eq!(open(&of, NOW + 86_399).as_deref(), Some("task"));
        assert_eq!(open(&of, NOW + 86_400), None);
        for other in [
            StateOf::of_tasks(&place("b"), &ada, 86_400),
            StateOf::of_tasks(&place("a"), &who("ide", Some("ben")), 86_400),
            StateOf::new("tools/call", "one__read", &place("a"), &ada),
        ] {
            assert_eq!(open(&other, NOW), None);
        }
    }

    #[test]
    fn what_a_caller_has_open_is_told_from_what_anybody_else_has() {
        let sealer = Sealer::new(&Secret::new(vec![1; 32]), None).expect("keys");
        let place = |route| Place::new(route, [("one", "x/mcp".to_owned())].into_iter());
        let with = |route, user, server, own: &str| {
            let who = who("ide", Some(user));
            sealer.mark_of_caller(&place(route), &who, server, own.as_bytes())
        };
        let mark = |route, user, server| with(route, user, server, "");
        let ada = mark("a", "ada", "one");
        assert_eq!(ada, mark("a", "ada", "one"));
        for other in [
            mark("b", "ada", "one"),
            mark("a", "ben", "one"),
            mark("a", "ada", "two"),
            with("a", "ada", "one", "token"),
        ] {
            assert_ne!(ada, other);
        }
    }
}
