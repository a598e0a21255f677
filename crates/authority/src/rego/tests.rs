//! What policies answer, what is wrong with others, and what bounds them.

use std::net::IpAddr;
use std::sync::Arc;

use policy::authority::{Asked, Claim, Decision, Members, Rules};

use super::facts::Needs;
use super::{MODULE_BYTES_MAX, STEPS_MAX, compile};
use crate::Fault;
use crate::fixture::{CLAIMS, asked, claims};
use crate::stack::on_half;

const QUERY: &str = "data.tollgate.allow";

fn policy(text: &str) -> Result<Arc<dyn Rules>, Vec<Fault>> {
    let text = format!("package tollgate\n{text}");
    compile(&[("policy.rego", &text)], QUERY)
}

fn decide(text: &str) -> Decision {
    let claims = claims(CLAIMS);
    policy(text)
        .unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
        .decide(&asked(&claims))
}

#[test]
fn a_condition_holds_or_does_not() {
    let holds = [
        r#"input.workload == "coding"; input.method == "POST"; input.route == "main"; input.operation == "chat""#,
        r#"input.key == "k-1"; not input.user; input.model == "gpt-4*""#,
        r#"startswith(input.path, "/v1/"); regex.match("^/v[0-9]+/", input.path)"#,
        r#"input.tags.team == "search"; input.tags.cost == ""; count(input.tags) == 2"#,
        r#""intern" in input.claims.groups; "größe" in input.backends; count(input.backends) == 2"#,
        r#"some g in input.claims.groups; g in input.backends"#,
        r#"every b in input.backends { count(b) > 4 }"#,
        r#"input.claims.big == 9007199254740993; input.claims.big > 9007199254740992"#,
        r#"input.claims.share < 1; input.claims.level == 3.0; input.claims.nothing == null"#,
        r#"net.cidr_contains("10.0.0.0/8", input.source); not net.cidr_contains("11.0.0.0/8", input.source)"#,
        r#"time.clock([input.time_ns, "Europe/Zurich"]) == [23, 30, 15]; time.clock(input.time_ns) == [22, 30, 15]"#,
        r#"time.weekday([input.time_ns, "Asia/Kolkata"]) == "Sunday"; time.weekday(input.time_ns) == "Saturday""#,
        r#"input["claims"]["a.b"] == 1; input.claims.org.units[1] == "b""#,
        r#"x := input; x.workload == "coding"; count(x) == 12"#,
        r#"object.get(input, "user", "nobody") == "nobody""#,
    ];
    for when in holds {
        let decision = decide(&format!("allow if {{ {when} }}"));
        assert_eq!((decision.allowed, decision.why), (true, None), "{when}");
        assert_eq!(decision.by.as_deref(), Some(QUERY));
    }
}

#[test]
fn what_is_not_true_refuses() {
    let cases = [
        (
            "allow if input.user != \"mallory\"",
            Some("data.tollgate.allow is undefined"),
        ),
        (
            "allow if input.claims.none != 1",
            Some("data.tollgate.allow is undefined"),
        ),
        ("allow := false", None),
        (
            "default allow := false\nallow if input.workload == \"x\"",
            None,
        ),
        (
            "allow := 1",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := \"true\"",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := {\"a\": true}",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow contains input.workload",
            Some("data.tollgate.allow is neither true nor false"),
        ),
        (
            "allow := input.claims.sub if true\nallow := input.workload if true",
            Some("the policy failed at policy.rego:3:1"),
        ),
        (
            "allow if not startswith(input.claims.level, \"a\")",
            Some("the policy failed at policy.rego:2:"),
        ),
        (
            "allow if data.tollgate.other.x",
            Some("data.tollgate.allow is undefined"),
        ),
        (
            "allow if to_number(input.claims.sub) == 1",
            Some("the policy failed at policy.rego:2:"),
        ),
    ];
    for (text, why) in cases {
        let decision = decide(text);
        assert_eq!((decision.allowed, &decision.by), (false, &None), "{text}");
        let said = decision.why.as_deref();
        assert_eq!(said.is_some(), why.is_some(), "{text}: {said:?}");
        assert!(
            said.unwrap_or_default()
                .starts_with(why.unwrap_or_default()),
            "{text}: {said:?}"
        );
        for value in ["ada", "coding"] {
            assert!(
                !said.unwrap_or_default().contains(value),
                "{text}: {said:?}"
            );
        }
    }
}

#[test]
fn what_contradicts_itself_refuses_even_behind_a_not() {
    let cases = [
        "allow := true if input.workload\nallow := false if input.path",
        "allow := false if input.workload\nallow := true if input.path",
        "allow := input.claims.sub if input.workload\nallow := input.workload if input.path",
        "f(x) := true if x\nf(x) := false if x\nallow if f(input.path)",
        "bad := true if input.workload\nbad := false if input.path\nallow if not bad",
        "f(x) := 1 if x\nf(x) := 2 if x\nallow if not f(1)",
        "allow if not {k: v | some k in [1]; some v in [1, 2]}",
        "allow if {k: v | some k in [1]; some v in [1, 2]}[1] == 2",
        "of[k] := v if {some k in [1]; some v in [1, 2]}\nallow if of[1] == 2",
    ];
    for text in cases {
        let decision = decide(text);
        let why = decision.why.unwrap_or_default();
        assert!(
            !decision.allowed && why.starts_with("the policy failed at policy.rego:"),
            "{text}: {why}"
        );
    }
}

#[test]
fn what_reaches_the_world_does_not_load() {
    let cases = [
        (
            "allow if http.send({\"method\": \"GET\", \"url\": \"http://[::1]/\"})",
            "http.send",
        ),
        ("allow if time.now_ns() > 0", "write input.time_ns"),
        ("allow if opa.runtime().env.HOME", "opa.runtime"),
        ("allow if rand.intn(\"a\", 2) == 1", "rand.intn"),
        ("allow if uuid.rfc4122(\"a\")", "uuid.rfc4122"),
        (
            "allow if count(numbers.range(1, input.claims.big)) > 1",
            "numbers.range is not offered",
        ),
        (
            "allow if net.cidr_expand(\"::/0\")",
            "net.cidr_expand is not offered",
        ),
        (
            "allow if bits.lsh(1, input.claims.big) > 0",
            "bits.lsh is not offered",
        ),
        (
            "allow if { print(input.claims); true }",
            "builtin function: print",
        ),
        ("allow if startwith(input.path, \"a\")", "startwith"),
        ("allow if __builtin_host_await(1, \"a\")", "host_await"),
        ("allow if input.path = ", "policy.rego"),
        ("allow if { input.path == \"a\"", "policy.rego"),
        ("allow { true }", "if"),
        ("other := true", "data.tollgate.allow"),
        ("allow if allow", "calls itself"),
        ("allow if y == 1", "y"),
        ("allow if r1\nr1 if r2\nr2 if r1", "calls itself"),
        ("allow if f(1)\nf(x) := y if y := f(x)", "calls itself"),
        ("allow if data.tollgate[input.path]", "recursion"),
    ];
    for (text, says) in cases {
        let faults = policy(text).expect_err(text);
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(
            said.iter().any(|said| said.contains(says)),
            "{text}: {said:?}"
        );
        assert!(
            said.iter().all(|said| !said.contains('\n')),
            "{text}: {said:?}"
        );
    }
}

#[test]
fn a_policy_is_bounded_before_it_is_read() {
    let long = format!(
        "package tollgate\nallow := true # {}",
        "x".repeat(MODULE_BYTES_MAX)
    );
    let faults =
        compile(&[("long.rego", &long), ("ok.rego", "package a")], QUERY).expect_err("too long");
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].to_string().starts_with("long.rego: is 655"),
        "{faults:?}"
    );
    assert!(compile(&[], QUERY).is_err());
    for query in [
        "",
        "allow",
        "data",
        "data.allow",
        "data.a.b.",
        "data.a[\"b\"]",
        "data.a.b == 1",
        "input.a.b",
    ] {
        let faults = compile(&[("a.rego", "package a\nb := true")], query).expect_err(query);
        assert!(
            faults[0].says.contains("such as data.tollgate.allow"),
            "{query}: {faults:?}"
        );
    }
    let many: String = (0..300)
        .map(|n| format!("r{n} if input.claims.a == {n}\nallow if r{n}\n"))
        .collect();
    let faults = policy(&many).expect_err("too many rules");
    assert!(faults[0].says.contains("at most 256"), "{faults:?}");
}

#[test]
fn decisions_end_with_their_steps() {
    let many = format!("{{\"a\": [{}0], \"n\": 1}}", "1,".repeat(1000));
    let of = claims(&many);
    let slow = [
        "allow if { some x in input.claims.a; some y in input.claims.a; x + y == 5 }",
        "allow if { every x in input.claims.a { every y in input.claims.a { x + y < 5 } } }",
        "allow if count([1 | some x in input.claims.a; some y in input.claims.a; x + y < 5]) > 1",
        "allow if not slow\nslow if { some x in input.claims.a; some y in input.claims.a; x + y == 5 }",
    ];
    for text in slow {
        let rules = policy(text).expect("usable");
        let decision = rules.decide(&asked(&of));
        let why = decision.why.expect(text);
        let most = format!("the policy took more than {STEPS_MAX} steps");
        assert_eq!((decision.allowed, &*why), (false, &*most), "{text}");
        let small = claims("{\"a\": [], \"n\": 1}");
        assert!(
            !rules
                .decide(&asked(&small))
                .why
                .is_some_and(|why| why.contains("took")),
            "{text}"
        );
    }
    let quick = policy("allow if { 0 in input.claims.a; every x in input.claims.a { x < 2 } }")
        .expect("usable");
    assert!(
        quick.decide(&asked(&of)).allowed,
        "what looks at each claim twice has room"
    );
}

#[test]
fn hostile_claims_refuse() {
    let rules = policy("allow if input.claims").expect("usable");
    let ints = |n: usize| Claim::List(vec![Claim::Int(1); n]);
    let deep = (0..3000).fold(Claim::Null, |inner, _| Claim::List(vec![inner]));
    for (claim, allowed) in [
        (Claim::Null, true),
        (Claim::Float(1e300), true),
        (Claim::Int(i64::MIN), true),
        (Claim::Text(Box::from("\u{0}\u{10ffff}")), true),
        (Claim::Float(f64::NAN), false),
        (Claim::Float(f64::INFINITY), false),
        (deep, false),
        (ints(1023), true),
        (ints(1024), false),
    ] {
        let of = Members::new(vec![(Box::from("a"), claim)]);
        let decision = rules.decide(&asked(&of));
        assert_eq!(
            (decision.allowed, decision.why.is_some()),
            (allowed, !allowed)
        );
    }
}

#[test]
fn whole_numbers_above_two_to_the_63rd_are_exact_or_refuse() {
    let large = claims(r#"{"a": 18446744073709551615, "b": 18446744073709551614}"#);
    let inexact = claims(r#"{"a": 18446744073709551616, "b": 18446744073709551617}"#);
    for (when, allowed) in [
        ("input.claims.a == input.claims.b", false),
        ("input.claims.a != input.claims.b", true),
        ("input.claims.a == 18446744073709551615", true),
        ("input.claims.a == 18446744073709551614", false),
        ("input.claims.a - input.claims.b == 1", true),
    ] {
        let rules = policy(&format!("allow if {when}")).expect(when);
        assert_eq!(rules.decide(&asked(&large)).allowed, allowed, "{when}");
        let decision = rules.decide(&asked(&inexact));
        assert_eq!(
            (decision.allowed, decision.why.as_deref()),
            (
                false,
                Some("a claim is a number of more digits than are told apart")
            ),
            "{when}"
        );
    }
}

#[test]
fn an_ipv4_address_in_ipv6s_clothes_is_one_and_time_has_an_end() {
    let none = Members::NONE;
    let source: IpAddr = "::ffff:10.1.2.3".parse().expect("an address");
    let mapped = Asked {
        source,
        ..asked(&none)
    };
    let rules = policy("allow if input.source == \"10.1.2.3\"").expect("usable");
    assert!(rules.decide(&mapped).allowed);
    let late = Asked {
        unix_ms: u64::MAX,
        ..asked(&none)
    };
    let rules = policy("allow if time.clock(input.time_ns)[0] >= 0").expect("usable");
    assert!(!rules.decide(&late).allowed);
    assert!(rules.decide(&asked(&none)).allowed);
}

#[test]
fn only_what_a_policy_can_look_at_is_made() {
    let all = Needs::of(["allow if input == 1"]);
    for (text, is_all) in [
        ("allow if input.path == input.model", false),
        ("allow if input[\"claims\"].a", false),
        ("allow if data.input_x.y", false),
        ("allow if my_input.path", false),
        ("allow if input[x]", true),
        ("allow if input [\"claims\"]", true),
        ("allow if input[\"cl\\u0061ims\"]", true),
        ("import input as i", true),
        ("allow if input.other", true),
        ("allow if object.get(input, \"user\", 1)", true),
    ] {
        assert_eq!(Needs::of([text]) == all, is_all, "{text}");
    }
    assert_ne!(
        Needs::of(["allow if input.path"]),
        Needs::of(["allow if input.model"])
    );
}

#[test]
fn threads_decide_alike_and_old_policies_stay_right() {
    let rules: Vec<Arc<dyn Rules>> = (0..6)
        .map(|n| policy(&format!("allow if input.claims.n == {n}")).expect("usable"))
        .collect();
    let work = |rules: &[Arc<dyn Rules>]| {
        for round in 0..30 {
            for (n, rules) in rules.iter().enumerate() {
                let of = claims(&format!("{{\"n\": {}}}", round % 6));
                assert_eq!(rules.decide(&asked(&of)).allowed, n == round % 6);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| work(&rules));
        }
    });
}

/// The deepest shapes that load.
#[test]
fn the_deepest_policies_fit_the_stack_of_their_thread() {
    let nest = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    type Shape = Box<dyn Fn(usize) -> String + Send>;
    let shapes: Vec<Shape> = vec![
        Box::new(move |n| format!("allow if {} == 1", nest("[", "1", "]", n))),
        Box::new(move |n| format!("allow if {} == 1", nest("(", "1", ")", n))),
        Box::new(move |n| format!("allow if {} == 1", nest("{\"a\":", "1", "}", n))),
        Box::new(move |n| format!("allow if input.claims{} == 1", ".a".repeat(n))),
        Box::new(move |n| format!("allow if input.claims{} == 1", "[0]".repeat(n))),
        Box::new(move |n| format!("allow if 1{} == 1", "\n+ 1".repeat(n))),
        Box::new(move |n| format!("allow if {}1 == 1", "-".repeat(n))),
        Box::new(move |n| format!("allow if {}true", "not ".repeat(n))),
        Box::new(move |n| format!("allow if {} > 1", nest("count([", "1", "])", n))),
        Box::new(move |n| format!("allow if {}", nest("every x in [1] {", "true", "}", n))),
        Box::new(move |n| {
            format!(
                "allow if {{ input.a }}{}",
                "\nelse := false if { input.b }".repeat(n)
            )
        }),
        Box::new(move |n| {
            let rule = |i: usize| format!("r{i} if r{}\n", i + 1);
            format!(
                "allow if r0\n{}r{n} := true",
                (0..n).map(rule).collect::<String>()
            )
        }),
        Box::new(move |n| {
            let rule = |i: usize| format!("f{i}(x) := f{}(x)\n", i + 1);
            format!(
                "allow if f0(1)\n{}f{n}(x) := true",
                (0..n).map(rule).collect::<String>()
            )
        }),
    ];
    let more: Vec<Shape> = vec![
        Box::new(move |n| format!("allow if 1{} == 1", " +\n1".repeat(n))),
        Box::new(move |n| format!("allow if 1{}", "\nin [1]".repeat(n))),
        Box::new(move |n| format!("allow if x{} := 1", "\n:= x".repeat(n))),
        Box::new(move |n| format!("allow if [1 |{} true]", " some\nx in [1];".repeat(n))),
        Box::new(move |n| format!("allow if true{}", "\nwith input.a as 1".repeat(n))),
        Box::new(move |n| format!("allow if 1{} == 1", "# (\n+ `(` # \"\n + 1".repeat(n))),
    ];
    let work = move || {
        let of = claims(CLAIMS);
        for shape in shapes.into_iter().chain(more) {
            for n in [1, 5, 10, 20, 31, 32, 33, 64, 128, 200, 250, 1000, 2000] {
                if let Ok(rules) = policy(&shape(n)) {
                    drop(rules.decide(&asked(&of)));
                }
            }
        }
    };
    on_half(work);
}
