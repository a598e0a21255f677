//! Files of traffic: what comes with the program reads, and faults are told by line and member.

use super::*;

const SMALL: &str = r#"
[[profile]]
name = "a"
weight = 2
think = "mmpp:7.5s"
first_tokens = { mean = 1000, cv = 0.5 }
output_tokens = { mean = 400 }

[[profile]]
name = "b"
arrivals = "gamma:2/s,cv=1.5"
think = "exponential:5s"
scope = "fleet"
shared_tokens = 700
first_tokens = { mean = 1000 }
turn_tokens = { mean = 200 }
output_tokens = { mean = 400 }
turns = { mean = 3 }
context_tokens = 9000
answers = "recorded"
"#;

fn parse(text: &str) -> Result<Traffic, FileError> {
    Traffic::parse(text, "f", |file| Err(format!("{file}: not there")))
}

#[test]
fn what_comes_with_the_program_reads() {
    assert_eq!(Traffic::names(), ["paper"]);
    let paper = Traffic::named("paper").unwrap();
    assert_eq!(paper.profiles.len(), 4);
    assert!(Traffic::named("no-such").is_none());
}

#[test]
fn what_a_file_says_and_leaves_out() {
    let Traffic { profiles } = parse(SMALL).unwrap();
    let [a, b] = &profiles[..] else {
        panic!("{profiles:?}");
    };
    assert_eq!(a.comes, Comes::Users { weight: 2.0 });
    assert_eq!((a.scope, a.talk.answers), (Scope::Profile, Answers::Own));
    assert_eq!(a.talk.turns, Length::fixed(1.0));
    assert_eq!((a.talk.shared_tokens, a.talk.context_tokens), (0, None));
    assert!(matches!(b.comes, Comes::Sessions { .. }));
    assert_eq!((b.scope, b.talk.answers), (Scope::Fleet, Answers::Recorded));
    assert_eq!(b.talk.context_tokens, Some(9000));
}

#[test]
fn a_fault_is_told_with_its_line_and_member() {
    let cases = [
        (
            "weight = 2",
            "weight = 0",
            "f:2: profile[0].weight: is not above 0",
        ),
        ("weight = 2", "wieght = 2", "f:4: unknown field `wieght`"),
        ("\"mmpp:7.5s\"", "\"mmpp:7.5\"", "f:5: process \"mmpp:7.5\""),
        (
            "\"mmpp:7.5s\"",
            "\"constant:0s\"",
            "f:2: profile[0].think: has a mean pause",
        ),
        (
            "\"mmpp:7.5s\"",
            "\"recorded\"",
            "f:2: profile[0].think: needs a law",
        ),
        (
            "cv = 0.5",
            "cv = -1",
            "f:2: profile[0].first_tokens: has a variation",
        ),
        (
            "mean = 200",
            "mean = 0",
            "f:9: profile[1].turn_tokens: has a mean",
        ),
        (
            "turn_tokens = { mean = 200 }",
            "",
            "f:9: profile[1].turn_tokens: has to be there",
        ),
        (
            "\"gamma:2/s,cv=1.5\"",
            "\"trace:t.csv\"",
            "f:9: profile[1].arrivals: t.csv: not there",
        ),
        (
            "scope = \"fleet\"",
            "scope = \"all\"",
            "f:13: unknown variant `all`",
        ),
        ("answers = \"recorded\"", "answers = 1", "f:20: "),
        (
            "arrivals =",
            "weight = 1\narrivals =",
            "f:9: profile[1].weight: is a share",
        ),
        (
            "shared_tokens = 700",
            "shared_tokens = 99999999",
            "f:9: profile[1].shared_tokens: is more",
        ),
    ];
    for (from, to, says) in cases {
        assert!(SMALL.contains(from), "{from}");
        let error = parse(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with(says), "{to}: {error}");
    }
    assert!(parse("").unwrap_err().to_string().contains("profile"));
}
