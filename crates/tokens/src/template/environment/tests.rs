//! No template runs for ever. Not here: how long its text may become (`crate::tests::hostile`).

use wire::dialect::Operation;

use super::*;
use crate::Uncountable;
use crate::tests::{CLOCK_S, tiny};

#[test]
fn a_template_that_never_ends_is_stopped() {
    let endless = "{% for a in range(90000) %}{% for b in range(90000) %}{% set c = a %}{% endfor %}{% endfor %}";
    let ends = "{% for a in range(900) %}{% set c = a %}{% endfor %}{{ messages[0].content }}";
    let body = br#"{"messages":[{"role":"user","content":"a"}]}"#;
    // What it takes to use up all that a template has is a matter of seconds; that it is used up is not.
    assert_eq!(new().fuel(), Some(FUEL));
    FUEL_OF_TEST.set(Some(20_000));
    let stopped = tiny(endless).prompt(Operation::Chat, body, CLOCK_S);
    assert!(
        matches!(&stopped, Err(Uncountable::Template(reason)) if reason.contains("out of fuel")),
        "{stopped:?}"
    );
    let ended = tiny(ends).prompt(Operation::Chat, body, CLOCK_S);
    assert!(ended.is_ok(), "{ended:?}");
}
