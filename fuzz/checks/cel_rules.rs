//! What must hold for any text that claims to be a rule in CEL.
//!
//! It compiles or has a fault, in words that can be logged. What compiles decides the same twice; alone as a rule that
//! denies it allows nothing, and beside a rule that allows all it allows exactly where it is false.
//! Not here: what CEL means (the tests of `authority`).

use std::net::IpAddr;

use authority::cel::{Effect, Rule, compile};
use policy::authority::{Asked, Claim, Members};

/// Panics when an invariant is broken. The input is an expression.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Ok(when) = std::str::from_utf8(input) else {
        return;
    };
    let rule = |name: &str, effect, when: &str| Rule {
        name: name.to_owned(),
        effect,
        when: when.to_owned(),
    };
    let allows = match compile(&[rule("allows", Effect::Allow, when)]) {
        Ok(rules) => rules,
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!(!fault.says.is_empty() && fault.rule == "allows");
            }
            return;
        }
    };
    let denies =
        compile(&[rule("denies", Effect::Deny, when)]).expect("the effect is none of its text");
    let all_but = [
        rule("all", Effect::Allow, "true"),
        rule("denies", Effect::Deny, when),
    ];
    let all_but = compile(&all_but).expect("both compile");
    let claims = claims();
    for unix_ms in [0, 1_774_737_015_250] {
        let asked = asked(&claims, unix_ms);
        let decision = allows.decide(&asked);
        assert_eq!(decision, allows.decide(&asked), "the same facts");
        assert!(!denies.decide(&asked).allowed, "nothing allows");
        let is_false = !decision.allowed && decision.why.is_none();
        assert_eq!(
            all_but.decide(&asked).allowed,
            is_false,
            "true and failed refuse"
        );
    }
}

fn claims() -> Members {
    let text = |text: &str| Claim::Text(text.into());
    let groups = vec![
        text("dev"),
        text("gr\u{f6}\u{df}e"),
        Claim::Null,
        Claim::Int(7),
    ];
    Members::new(vec![
        ("sub".into(), text("ada")),
        ("level".into(), Claim::Int(i64::MAX)),
        ("share".into(), Claim::Float(0.5)),
        ("admin".into(), Claim::Bool(true)),
        ("nothing".into(), Claim::Null),
        ("groups".into(), Claim::List(groups)),
        ("ip".into(), text("192.168.7.9")),
        (
            "org".into(),
            Claim::Map(Members::new(vec![("name".into(), text("acme"))])),
        ),
    ])
}

fn asked(claims: &Members, unix_ms: u64) -> Asked<'_> {
    Asked {
        workload: "coding",
        key: Some("k-1"),
        user: None,
        tags: &[("team", "search"), ("cost", "")],
        claims,
        method: "POST",
        path: "/v1/chat/completions",
        operation: "chat",
        model: Some("gpt-4*"),
        route: "main",
        backends: &["frontier"],
        source: IpAddr::from([10, 1, 2, 3]),
        unix_ms,
    }
}
