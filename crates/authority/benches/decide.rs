//! What a decision costs: three usual rules in CEL and in Rego, and what compiling them costs.
//!
//! `cargo bench -p authority --bench decide`. Not here: what asking costs an exchange (`proxy`).

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::sync::Arc;

use authority::cel::{self, Effect, Rule};
use authority::rego;
use divan::{AllocProfiler, Bencher, black_box};
use policy::authority::Rules;

use crate::fixture::{CLAIMS, asked, claim, claims};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const POLICY: &str = r#"package tollgate

default allow := false

allow if {
	not denied
	allowed
}

denied if {
	"intern" in input.claims.groups
	"backup" in input.backends
}

allowed if {
	input.workload == "chat"
	time.clock([input.time_ns, "Europe/Zurich"])[0] >= 8
}

allowed if {
	startswith(input.model, "gpt-4")
	"dev" in input.claims.groups
	net.cidr_contains("10.0.0.0/8", input.source)
}
"#;

fn main() {
    divan::main();
}

fn rules() -> Vec<Rule> {
    let rule = |effect, name: &str, when: &str| Rule {
        name: name.to_owned(),
        effect,
        when: when.to_owned(),
    };
    vec![
        rule(
            Effect::Deny,
            "interns",
            r#""intern" in claims.groups && "backup" in backends"#,
        ),
        rule(
            Effect::Allow,
            "office",
            r#"workload == "chat" && time.getHours("Europe/Zurich") >= 8"#,
        ),
        rule(
            Effect::Allow,
            "dev",
            r#"model.startsWith("gpt-4") && "dev" in claims.groups && source.inNetwork("10.0.0.0/8")"#,
        ),
    ]
}

fn in_cel() -> Arc<dyn Rules> {
    cel::compile(&rules()).expect("usable rules")
}

fn in_rego() -> Arc<dyn Rules> {
    rego::compile(&[("policy.rego", POLICY)], "data.tollgate.allow").expect("a usable policy")
}

fn bench_rules(bencher: Bencher<'_, '_>, rules: &dyn Rules) {
    let claims = claims(CLAIMS);
    let asked = asked(&claims);
    assert!(rules.decide(&asked).allowed);
    bencher.bench_local(|| rules.decide(black_box(&asked)));
}

fn bench_cel(bencher: Bencher<'_, '_>, when: &str) {
    let rule = Rule {
        name: "a".to_owned(),
        effect: Effect::Allow,
        when: when.to_owned(),
    };
    bench_rules(bencher, &*cel::compile(&[rule]).expect("a usable rule"));
}

#[divan::bench]
fn cel_three_rules(bencher: Bencher<'_, '_>) {
    bench_rules(bencher, &*in_cel());
}

#[divan::bench]
fn cel_time_zone(bencher: Bencher<'_, '_>) {
    bench_cel(bencher, r#"time.getHours("Europe/Zurich") >= 8"#);
}

#[divan::bench]
fn cel_regular_expression(bencher: Bencher<'_, '_>) {
    bench_cel(bencher, r#"path.matches("^/v[0-9]+/(chat|audio)/[a-z]+$")"#);
}

#[divan::bench]
fn cel_loop(bencher: Bencher<'_, '_>) {
    bench_cel(bencher, r#"claims.groups.exists(g, g in backends)"#);
}

/// The longest that claims can make a rule take.
#[divan::bench]
fn cel_all_steps(bencher: Bencher<'_, '_>) {
    let many = serde_json::json!({ "a": vec![0; 8000] });
    let policy::authority::Claim::Map(claims) = claim(&many) else {
        return;
    };
    let when = "claims.a.all(x, claims.a.all(y, x == y))".to_owned();
    let rule = Rule {
        name: "a".to_owned(),
        effect: Effect::Allow,
        when,
    };
    let rules = cel::compile(&[rule]).expect("a usable rule");
    let asked = asked(&claims);
    bencher.bench_local(|| rules.decide(black_box(&asked)));
}

#[divan::bench]
fn rego_three_rules(bencher: Bencher<'_, '_>) {
    bench_rules(bencher, &*in_rego());
}

/// The longest that claims can make a policy take.
#[divan::bench(sample_count = 20)]
fn rego_all_steps(bencher: Bencher<'_, '_>) {
    let many = serde_json::json!({ "a": vec![0; 1000] });
    let policy::authority::Claim::Map(claims) = claim(&many) else {
        return;
    };
    let text = "package tollgate\nallow if { some x in input.claims.a; some y in input.claims.a; x + y == 5 }";
    let rules = rego::compile(&[("a.rego", text)], "data.tollgate.allow").expect("a usable policy");
    let asked = asked(&claims);
    bencher.bench_local(|| rules.decide(black_box(&asked)));
}

fn groups() -> Vec<String> {
    (0..900).map(|n| format!("team-{n:03}")).collect()
}

fn bench_groups(bencher: Bencher<'_, '_>, condition: &str) {
    let many = serde_json::json!({ "a": groups() });
    let policy::authority::Claim::Map(claims) = claim(&many) else {
        return;
    };
    let text = format!(
        "package tollgate\nl := input.claims.a\nallow if {{ some x in l; some y in l; {condition} }}"
    );
    let rules =
        rego::compile(&[("a.rego", &text)], "data.tollgate.allow").expect("a usable policy");
    let asked = asked(&claims);
    bencher.bench_local(|| rules.decide(black_box(&asked)));
}

/// The longest that claims can make operators take.
#[divan::bench(sample_count = 20, args = ["x == y; x != y", "[x, y] in l", "l != l", "z := trim_right(x, y); z == l"])]
fn rego_operators(bencher: Bencher<'_, '_>, condition: &str) {
    bench_groups(bencher, condition);
}

/// The longest that claims can make functions take.
#[divan::bench(sample_count = 20, args = ["trim(x, y) == \"x\"", "regex.match(sprintf(\"^%s$\", [x]), \"x\")"])]
fn rego_functions(bencher: Bencher<'_, '_>, condition: &str) {
    bench_groups(bencher, condition);
}

/// The longest that a natural one takes: whether one list of claims has an element of another.
#[divan::bench(sample_count = 20)]
fn rego_lists(bencher: Bencher<'_, '_>) {
    let texts =
        |start: &str| -> Vec<String> { (0..510).map(|n| format!("{start}{n:03}")).collect() };
    let many = serde_json::json!({ "a": texts("same-a"), "b": texts("same-b") });
    let policy::authority::Claim::Map(claims) = claim(&many) else {
        return;
    };
    let text = "package tollgate\nallow if { some x in input.claims.a; x in input.claims.b }";
    let rules = rego::compile(&[("a.rego", text)], "data.tollgate.allow").expect("a usable policy");
    let asked = asked(&claims);
    bencher.bench_local(|| rules.decide(black_box(&asked)));
}

#[divan::bench]
fn compile_cel() -> Arc<dyn Rules> {
    in_cel()
}

#[divan::bench]
fn compile_rego() -> Arc<dyn Rules> {
    in_rego()
}
