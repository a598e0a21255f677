//! The same policy in CEL, in Rego, and decided by Open Policy Agent itself.
//!
//! Everyday: the first cases of a seed, against the verdicts that OPA gave for them (`verdicts.txt`). With OPA at hand,
//! as many as are wanted:
//! `TOLLGATE_OPA=/path/to/opa TOLLGATE_AUTHORITY_CASES=1000000 cargo test -p authority --test main -- opa`
//! and with `UPDATE=1` the verdicts are recorded anew.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use authority::cel::{self, Effect, Rule};
use authority::rego;
use policy::authority::{Decision, Rules};

use self::cases::{Case, Random};
use testing::{number_of, skip};

pub(crate) use self::cases::Random as Chance;

/// The rules of `policy.rego`, in CEL.
const RULES: [(Effect, &str, &str); 15] = [
    (
        Effect::Deny,
        "outside",
        r#"!(source.inNetwork("10.0.0.0/8") || in_network(source, "192.168.7.0/24") || source.inNetwork("2001:db8::/32"))"#,
    ),
    (
        Effect::Deny,
        "interns",
        r#""groups" in claims && "intern" in claims.groups && "frontier" in backends"#,
    ),
    (
        Effect::Deny,
        "mallory",
        r#"user != null && user == "mallory""#,
    ),
    (
        Effect::Deny,
        "frozen",
        r#"has(tags.cost) && tags.cost == "frozen""#,
    ),
    (
        Effect::Deny,
        "night",
        r#"model != null && model.startsWith("größe-*") && (time.getHours("America/New_York") < 6 || time.getDayOfWeek("Asia/Kolkata") == 0)"#,
    ),
    (
        Effect::Deny,
        "keys",
        r#"key != null && key.matches("^(tmp|test)-[0-9]{2,4}$")"#,
    ),
    (
        Effect::Deny,
        "paths",
        r#"path.contains("..") || method == "DELETE" || operation == """#,
    ),
    (
        Effect::Deny,
        "quota",
        r#"has(claims.quota) && claims.quota <= 0"#,
    ),
    (
        Effect::Allow,
        "coding",
        r#"workload == "coding" && model in ["gpt-4*", "größe-*mini", "qwen/3 coder"] && route != "legacy" && !backends.all(b, b == "frontier")"#,
    ),
    (
        Effect::Allow,
        "office",
        r#"workload == "chat" && time.getHours("Europe/Zurich") >= 8 && time.getHours("Europe/Zurich") < 18 && time.getDayOfWeek("Europe/Zurich") in [1, 2, 3, 4, 5]"#,
    ),
    (
        Effect::Allow,
        "team",
        r#"claims.email_verified == true && claims.email.endsWith("@example.org") && claims.groups.exists(g, g.startsWith("team-") && g == "team-" + tags.team)"#,
    ),
    (
        Effect::Allow,
        "level",
        r#"claims.level >= 5 && claims.level != 6 && !(claims.org.name in ["blocked", "größe"])"#,
    ),
    (
        Effect::Allow,
        "quiet",
        r#"source.inNetwork("192.168.7.9") && tags.all(t, size(t) < 6) && claims.size() == 0 && time >= timestamp("2026-03-29T01:00:00Z")"#,
    ),
    (
        Effect::Allow,
        "fresh",
        r#"claims.iat > 0 && double(int(time)) - double(claims.iat) < 3600.0 && backends.exists_one(b, b == "edge")"#,
    ),
    (
        Effect::Allow,
        "mixed",
        r#""any" in claims.mixed && 2.5 in claims.mixed && claims.mixed[1] == [1, ["a", null]]"#,
    ),
];

const POLICY: &str = include_str!("policy.rego");
const RECORDED: &str = include_str!("verdicts.txt");
const RECORDED_CASES: usize = 2_000;
const SEED: u64 = 20_260_329;
const BATCH: usize = 10_000;

fn in_cel() -> Arc<dyn Rules> {
    let rule = |(effect, name, when): (Effect, &str, &str)| Rule {
        name: name.to_owned(),
        effect,
        when: when.to_owned(),
    };
    cel::compile(&RULES.map(rule)).expect("usable rules")
}

fn in_rego() -> Arc<dyn Rules> {
    rego::compile(&[("policy.rego", POLICY)], "data.tollgate.allow").expect("a usable policy")
}

/// A number that changes when the cases do (FNV-1a).
fn fingerprint(cases: &[Case]) -> u64 {
    let texts = cases.iter().map(|case| case.input().to_string());
    let bytes = texts.flat_map(String::into_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn first_cases() -> Vec<Case> {
    let mut random = Random(SEED);
    (0..RECORDED_CASES)
        .map(|_| Case::new(&mut random))
        .collect()
}

/// OPA compares numbers of any length; where one is not exact the gate refuses what it would have to ask of it.
fn assert_verdict(case: &Case, verdict: bool, by_cel: &Decision, by_rego: &Decision) {
    let input = || case.input().to_string();
    if case.is_exact() {
        assert_eq!(by_cel.allowed, verdict, "{by_cel:?}\n{}", input());
        assert_eq!(by_rego.allowed, verdict, "{by_rego:?}\n{}", input());
    } else {
        assert!(verdict || !by_cel.allowed, "{by_cel:?}\n{}", input());
        assert!(!by_rego.allowed, "{by_rego:?}\n{}", input());
    }
}

#[test]
fn cel_and_rego_decide_as_opa_did() {
    let (cel, rego) = (in_cel(), in_rego());
    let cases = first_cases();
    let mut lines = RECORDED.lines();
    let head = lines.next().expect("a first line");
    let expected = format!("seed {SEED}, fingerprint {:016x}", fingerprint(&cases));
    assert!(
        head.ends_with(&expected),
        "the cases are other ones than OPA decided: record anew; {head}, {expected}"
    );
    let verdicts: Vec<bool> = lines
        .flat_map(str::bytes)
        .map(|byte| byte == b'1')
        .collect();
    assert_eq!(verdicts.len(), cases.len());
    let mut decided: BTreeMap<String, usize> = BTreeMap::new();
    for (case, verdict) in cases.iter().zip(verdicts) {
        let by_cel = cel.decide(&case.asked());
        let by_rego = rego.decide(&case.asked());
        assert_verdict(case, verdict, &by_cel, &by_rego);
        let by = by_cel
            .by
            .map_or_else(|| "nobody".to_owned(), |by| by.to_string());
        *decided.entry(by).or_default() += 1;
    }
    assert_eq!(
        decided.len(),
        RULES.len() + 1,
        "each rule decides some case, and some none: {decided:?}"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test that is asked for says how in the environment"
)]
fn said(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn cel_and_rego_decide_as_opa_does() {
    let Some(opa) = said("TOLLGATE_OPA") else {
        return skip("TOLLGATE_OPA does not name OPA's executable");
    };
    let wanted = usize::try_from(number_of("TOLLGATE_AUTHORITY_CASES", 20_000)).expect("fits");
    if said("UPDATE").is_some() {
        record(&opa);
    }
    let (cel, rego) = (in_cel(), in_rego());
    let mut random = Random(SEED);
    let (mut done, mut allowed, mut failed) = (0, 0, 0);
    while done < wanted {
        let batch: Vec<Case> = (0..BATCH.min(wanted - done))
            .map(|_| Case::new(&mut random))
            .collect();
        let verdicts = opa_verdicts(&opa, &batch);
        assert_eq!(verdicts.len(), batch.len());
        for (case, verdict) in batch.iter().zip(verdicts) {
            let by_cel = cel.decide(&case.asked());
            let by_rego = rego.decide(&case.asked());
            assert_verdict(case, verdict, &by_cel, &by_rego);
            allowed += usize::from(verdict);
            failed += usize::from(by_cel.why.is_some());
        }
        done += batch.len();
    }
    println!(
        "seed {SEED}: {done} cases, {allowed} allowed, {failed} with an error in a CEL rule; no verdict differs"
    );
}

fn record(opa: &str) {
    let cases = first_cases();
    let mut text = format!(
        "OPA's verdicts, one digit a case: seed {SEED}, fingerprint {:016x}\n",
        fingerprint(&cases)
    );
    for line in opa_verdicts(opa, &cases).chunks(100) {
        let digits: String = line
            .iter()
            .map(|verdict| if *verdict { '1' } else { '0' })
            .collect();
        writeln!(text, "{digits}").expect("a String takes all");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opa/verdicts.txt");
    std::fs::write(path, text).expect("the verdicts are written");
}

/// What OPA says of each case.
fn opa_verdicts(opa: &str, cases: &[Case]) -> Vec<bool> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opa");
    let inputs: Vec<serde_json::Value> = cases.iter().map(Case::input).collect();
    let inputs = serde_json::to_vec(&inputs).expect("JSON");
    let mut child = Command::new(opa)
        .args([
            "eval",
            "--strict-builtin-errors",
            "--stdin-input",
            "--format",
            "raw",
        ])
        .args([
            "--data",
            &format!("{folder}/policy.rego"),
            "--data",
            &format!("{folder}/batch.rego"),
        ])
        .arg("data.batch.verdicts")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("OPA starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&inputs).expect("OPA reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("OPA ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
