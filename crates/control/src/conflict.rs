//! Listeners that cannot stand beside others on their port.
//!
//! Invariant: of two that different objects say the one whose object comes first stays as it is; of two that one object says neither does.
//! Not here: what is wrong with one alone (`listener`).

use crate::findings::Broken;
use crate::listener::Listener;

/// What is wrong with one of them.
pub(crate) struct Conflict {
    /// Its place among all.
    pub(crate) at: usize,
    pub(crate) how: Broken,
    pub(crate) says: String,
    pub(crate) hint: &'static str,
}

/// All that there are among these, which stand in the order of their objects.
pub(crate) fn conflicts(listeners: &[Listener]) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    for (at, one) in listeners.iter().enumerate() {
        let lost = |of: usize| found.iter().any(|conflict| conflict.at == of);
        let mut of_it = Vec::new();
        for (of, other) in listeners.iter().enumerate() {
            let is_own = of != at && other.owner == one.owner;
            let is_earlier = of < at && other.owner != one.owner && other.is_http() && !lost(of);
            if other.port != one.port || !(is_own || is_earlier) {
                continue;
            }
            let Some((how, what, hint)) = between(one, other, is_earlier) else {
                continue;
            };
            let whose = match is_own {
                true => String::new(),
                false => format!(" of {}", other.owner),
            };
            of_it.push(Conflict {
                at,
                how,
                says: format!(
                    "is on the port of the listener {}{whose}, which has {what}",
                    other.name
                ),
                hint,
            });
        }
        found.extend(of_it);
    }
    found
}

/// Why one cannot stand beside another one.
fn between(
    one: &Listener,
    other: &Listener,
    is_earlier: bool,
) -> Option<(Broken, &'static str, &'static str)> {
    // What is not served anyway keeps no other of its object from being.
    let is_other_protocol = one.is_tls() != other.is_tls() || is_earlier && !one.is_http();
    if is_other_protocol {
        let hint = "give it a port of its own";
        Some((Broken::ProtocolConflict, "another protocol", hint))
    } else if other.clients.are_against(&one.clients) {
        // Clients are asked for certificates before they say which listener a call is of.
        let hint = "validate clients alike at both, or give it a port of its own";
        Some((Broken::ProtocolConflict, "another frontendValidation", hint))
    } else if other.host() == one.host() {
        let hint = "give it a host of its own";
        Some((Broken::HostnameConflict, "the same host", hint))
    } else {
        None
    }
}
