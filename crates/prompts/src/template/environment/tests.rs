//! No template runs for ever. Not here: how long its text may become.

use super::*;
use crate::Uncountable;
use crate::conversation::{Content, Conversation, Turn};
use crate::template::{Template, TemplateSettings};

#[test]
fn a_template_that_never_ends_is_stopped() {
    let endless = "{% for a in range(90000) %}{% for b in range(90000) %}{% set c = a %}{% endfor %}{% endfor %}";
    let ends = "{% for a in range(900) %}{% set c = a %}{% endfor %}{{ messages[0].content }}";
    let rendered = |source: &str| {
        let template = Template::new(&source.into(), TemplateSettings::default());
        let turn = Turn::User {
            content: Content::of("a"),
            name: None,
        };
        let conversation = Conversation {
            turns: vec![turn],
            ..Conversation::default()
        };
        template.expect("a template").render(&conversation, 0)
    };
    // What it takes to use up all that a template has is a matter of seconds; that it is used up is not.
    assert_eq!(new().fuel(), Some(FUEL));
    FUEL_OF_TEST.set(Some(20_000));
    let stopped = rendered(endless);
    assert!(
        matches!(&stopped, Err(Uncountable::Template(reason)) if reason.contains("out of fuel")),
        "{stopped:?}"
    );
    let ended = rendered(ends);
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn a_template_that_makes_the_library_panic_can_be_loaded() {
    // A slice of nothing that goes backwards, by the one letter that the look at it says.
    let source = "{{ messages[0].content[1:][::-1] }}";
    let template = Template::new(&source.into(), TemplateSettings::default());
    assert!(template.is_ok());
}
