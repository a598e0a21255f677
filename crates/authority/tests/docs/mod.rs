//! The examples of `docs/authority.md` are usable, and what it says of them holds.

use authority::cel::{self, Effect, Rule};
use authority::rego;

use crate::fixture::{CLAIMS, asked, claims};

const PAGE: &str = include_str!("../../../../docs/authority.md");

/// The rules that the page writes as `{ name: …, allow: '…' }`.
fn rules() -> Vec<Rule> {
    let rule = |line: &str| {
        let written = line
            .trim()
            .strip_prefix("- { name: ")?
            .strip_suffix("' }")?;
        let (name, rest) = written.split_once(", ")?;
        let (effect, when) = rest.split_once(": '")?;
        let effect = match effect {
            "allow" => Effect::Allow,
            "deny" => Effect::Deny,
            _ => return None,
        };
        Some(Rule {
            name: name.to_owned(),
            effect,
            when: when.to_owned(),
        })
    };
    PAGE.lines().filter_map(rule).collect()
}

#[test]
fn the_examples_are_usable() {
    let rules = rules();
    assert_eq!(rules.len(), 12);
    cel::compile(&rules).expect("usable rules");
    let policy = PAGE
        .split("```rego\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let policy = policy.expect("an example in Rego");
    let rules =
        rego::compile(&[("policy.rego", policy)], "data.tollgate.allow").expect("a usable policy");
    let claims = claims(CLAIMS);
    let decision = rules.decide(&asked(&claims));
    assert!(
        !decision.allowed && decision.why.is_none(),
        "an intern, and the backend: {decision:?}"
    );
    let other = policy::authority::Asked {
        backends: &["edge"],
        ..asked(&claims)
    };
    assert!(rules.decide(&other).allowed);
}

#[test]
fn the_fault_of_the_page_is_what_is_said() {
    let rule = Rule {
        name: "office-hours".to_owned(),
        effect: Effect::Allow,
        when: "worklod == \"a\"".to_owned(),
    };
    let faults = cel::compile(&[rule]).expect_err("a slip");
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(PAGE.contains(&said.join("\n")), "{said:?}");
}

#[test]
fn the_bounds_of_the_page_are_those_of_the_code() {
    let bounds = [
        format!("| rules in CEL | {},", cel::RULES_MAX),
        format!(
            "| {} KiB; brackets and chains of operators together {} deep",
            cel::EXPRESSION_BYTES_MAX >> 10,
            cel::DEPTH_MAX
        ),
        format!(
            "| {},{} steps: about one",
            cel::STEPS_MAX / 1000,
            cel::STEPS_MAX % 1000
        ),
        format!(
            "| files in Rego | {}, each {} KiB",
            rego::MODULES_MAX,
            rego::MODULE_BYTES_MAX >> 10
        ),
        format!("| {} rules in use,", rego::RULES_MAX),
        format!(
            "brackets {} deep, chains of {} operators",
            rego::DEPTH_MAX,
            rego::CHAIN_MAX
        ),
        format!(
            "| a decision in Rego | {},000 steps",
            rego::STEPS_MAX.get() / 1000
        ),
        format!(
            "| the functions and operators of a decision in Rego | {},000 steps:",
            rego::FUNCTION_STEPS_MAX / 1000
        ),
        format!("compare; {} MiB made |", rego::BYTES_MADE_MAX >> 20),
        format!(
            "| a decision of all rules in CEL together | {},{} steps;",
            cel::ALL_STEPS_MAX / 1000,
            cel::ALL_STEPS_MAX % 1000
        ),
    ];
    for bound in bounds {
        assert!(PAGE.contains(&bound), "{bound}");
    }
}
