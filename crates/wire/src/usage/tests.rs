//! Usage of whole responses. Single usage objects: `vectors/sse/usage.txt`.

use super::*;

fn unary(body: &str, step: usize) -> Reading {
    let mut usage = UnaryUsage::new();
    body.as_bytes()
        .chunks(step)
        .for_each(|chunk| usage.push(chunk));
    *usage.finish()
}

#[test]
fn a_response_is_read_wherever_it_is_cut() {
    let body = r#"{"choices":[{"usage":1}],"usage":{"prompt_tokens":7,"completion_tokens":0,"total_tokens":7}}"#;
    let usage = Usage {
        prompt: Some(7),
        completion: Some(0),
        total: Some(7),
        ..Usage::default()
    };
    for step in 1..body.len() {
        assert_eq!(unary(body, step), Reading::Valid(usage));
    }
}

/// Google's API streams a list of documents to who does not ask for events.
#[test]
fn of_a_list_the_last_usage_counts_wherever_it_is_cut() {
    let usage = |completion| Usage {
        prompt: Some(7),
        completion: Some(completion),
        ..Usage::default()
    };
    let of =
        |n: u64| format!(r#""usageMetadata":{{"promptTokenCount":7,"candidatesTokenCount":{n}}}"#);
    let text = r#"{"candidates":[{"content":{"parts":[{"text":"},]{\"usageMetadata\":{}}"}]}}]}"#;
    for (body, expected) in [
        (format!(" [{{{}}}]", of(1)), Reading::Valid(usage(1))),
        (
            format!("[{{{}}},\r\n{text},\n{{{}}}\n]\n", of(1), of(9)),
            Reading::Valid(usage(9)),
        ),
        (
            format!("[{{{}}}, {text} ]", of(1)),
            Reading::Valid(usage(1)),
        ),
        // One that breaks off has told what it told.
        (
            format!("[{{{}}},{{{},", of(1), of(9)),
            Reading::Valid(usage(1)),
        ),
        (format!("[{text}]"), Reading::Absent),
        (format!("[{{{},\"x\":NaN}}]", of(1)), Reading::UNREAD),
        (format!("[{{{}}}] {{}}", of(1)), Reading::Valid(usage(1))),
        (format!("[{{{}}},7]", of(1)), Reading::Valid(usage(1))),
        (
            format!("[{{{}}},{{{}}}", of(1), of(9)),
            Reading::Valid(usage(9)),
        ),
        ("[[0.1,0.2]]".to_owned(), Reading::Absent),
        ("[\"a\"]".to_owned(), Reading::Absent),
        ("[ ]".to_owned(), Reading::NoAnswer),
        ("[{\"error\":{\"code\":429}}]".to_owned(), Reading::NoAnswer),
        (
            "[{\"error\":{\"code\":429}},{}]".to_owned(),
            Reading::Absent,
        ),
    ] {
        for step in 1..=body.len() {
            assert_eq!(unary(&body, step), expected, "{body} by {step}");
        }
    }
}

#[test]
fn a_usual_report_is_judged_as_any_other() {
    let counts = ["0", "7", "1099511627777", "-1", "null"];
    let members = [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "input_tokens",
        "reasoning_tokens",
    ];
    let pick = |nth: usize| counts[nth % counts.len()];
    for nth in 0..counts.len().pow(5) {
        let each = members.iter().enumerate();
        let written = each.map(|(at, name)| (name, pick(nth / counts.len().pow(at as u32))));
        let written = written.filter(|(_, count)| *count != "null");
        let written: Vec<_> = written.map(|(name, n)| format!("\"{name}\":{n}")).collect();
        let cached = format!(
            "\"prompt_tokens_details\":{{\"cached_tokens\":{}}}",
            pick(nth)
        );
        let text = format!("{{{}}}", [written, vec![cached]].concat().join(","));
        let report = Report::read(text.as_bytes());
        let (mut usual, mut any) = (Reading::Absent, Reading::Absent);
        report.judge(&mut usual);
        report.judge_any(&mut any);
        assert_eq!(usual, any, "{text}");
    }
}

#[test]
fn what_is_no_json_or_has_no_usage_is_absent() {
    for body in [
        "",
        "<html>usage</html>",
        "{\"usage\":{\"prompt_tokens\":7}",
        "{}",
        "{\"usage\":null}",
        "7",
    ] {
        assert_eq!(unary(body, 3), Reading::Absent, "{body}");
    }
}

#[test]
fn a_usage_object_beyond_the_bound_is_invalid_and_takes_no_memory() {
    let body = format!(
        "{{\"usage\":{{\"x\":\"{}\"}}}}",
        "x".repeat(USAGE_LIMIT_BYTES)
    );
    assert_eq!(unary(&body, 1000), Reading::UNREAD);
}

/// A model writes what its tools are called with, and a provider repeats what it was sent.
#[test]
fn an_answer_that_cannot_be_read_may_have_told_its_usage_and_says_so() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let usage = r#""usage":{"prompt_tokens":7,"completion_tokens":60000}"#;
    for value in [&*nested(200), "NaN", "\"\\x\"", "\"\n\""] {
        for body in [
            format!("{{\"x\":{value},{usage}}}"),
            format!("{{{usage},\"x\":{value}}}"),
        ] {
            for step in [1, 7, 10_000] {
                assert_eq!(unary(&body, step), Reading::UNREAD, "{body}");
            }
        }
    }
    let read = unary(&format!("{{\"x\":{},{usage}}}", nested(120)), 9);
    assert!(matches!(read, Reading::Valid(usage) if usage.completion == Some(60_000)));
    let unread = Report::UNREAD;
    let later = Report::read(br#"{"prompt_tokens":7,"completion_tokens":60000}"#);
    let mut all = unread.clone();
    let mut reading = Reading::Absent;
    all.judge(&mut reading);
    assert!(reading.is_unread());
    all.take_later(&later);
    all.judge(&mut reading);
    assert!(!reading.is_unread(), "what came later has it all");
    all.take_later(&unread);
    all.judge(&mut reading);
    assert!(matches!(reading, Reading::Valid(usage) if usage.is_unread));
}

#[test]
fn the_largest_count_is_valid_and_the_next_is_not() {
    let body = |tokens: u64| format!("{{\"usage\":{{\"input_tokens\":{tokens}}}}}");
    assert!(
        matches!(unary(&body(TOKEN_LIMIT), 9), Reading::Valid(usage) if usage.prompt == Some(TOKEN_LIMIT))
    );
    let said = |prompt| invalid(prompt, None);
    assert_eq!(
        unary(&body(TOKEN_LIMIT + 1), 9),
        said(Some(TOKEN_LIMIT + 1))
    );
    let most = i64::MAX.unsigned_abs();
    assert_eq!(unary(&body(most), 9), said(Some(most)));
    assert_eq!(unary(&body(most + 1), 9), said(None));
}

fn invalid(prompt_said: Option<u64>, completion_said: Option<u64>) -> Reading {
    Reading::Invalid(Usage {
        prompt_said,
        completion_said,
        ..Usage::default()
    })
}

#[test]
fn a_report_of_which_neither_sum_can_be_read_says_its_whole_numbers() {
    for (report, prompt, completion) in [
        (
            r#"{"prompt_tokens":1000000000000000000,"completion_tokens":-4}"#,
            Some(1_000_000_000_000_000_000),
            None,
        ),
        (
            r#"{"prompt_tokens":9.5,"output_tokens":"four"}"#,
            None,
            None,
        ),
        (r#"{"prompt_tokens_details":[]}"#, None, None),
        ("[9,4]", None, None),
    ] {
        assert_eq!(
            read(report.as_bytes()),
            invalid(prompt, completion),
            "{report}"
        );
    }
}

#[test]
fn members_are_judged_one_by_one_and_only_what_cannot_be_true_is_dropped() {
    for (report, prompt, completion, cached) in [
        // A part that is more than its whole, or negative, or no number.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":500}}"#,
            Some(10),
            Some(5),
            None,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
            Some(10),
            Some(5),
            None,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":3}"#,
            Some(10),
            Some(5),
            None,
        ),
        (
            r#"{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":-1,"cache_read_input_tokens":2}"#,
            Some(12),
            Some(5),
            Some(2),
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":6}}"#,
            Some(10),
            Some(5),
            None,
        ),
        // A sum of the engine's own below its parts.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}"#,
            Some(10),
            Some(5),
            None,
        ),
        // One of the two sums.
        (
            r#"{"prompt_tokens":-10,"completion_tokens":5}"#,
            None,
            Some(5),
            None,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":2.5}"#,
            Some(10),
            None,
            None,
        ),
        (
            r#"{"prompt_tokens":-10,"input_tokens":10,"completion_tokens":5}"#,
            Some(10),
            Some(5),
            None,
        ),
    ] {
        let usage = valid(report);
        assert_eq!(
            (
                usage.prompt,
                usage.completion,
                usage.cached,
                usage.reasoning
            ),
            (prompt, completion, cached, None),
            "{report}"
        );
        assert!(usage.doubtful && usage.total.is_none(), "{report}");
    }
    let beyond = valid(r#"{"prompt_tokens":1000000000000000000,"completion_tokens":5}"#);
    assert_eq!(beyond.prompt_said, Some(1_000_000_000_000_000_000));
    assert_eq!((beyond.prompt, beyond.completion), (None, Some(5)));
}

#[test]
fn whole_numbers_are_numbers_however_they_are_written() {
    for written in [
        "7",
        "7.0",
        "\"7\"",
        "\"7.0\"",
        "7e0",
        "0.7e1",
        "70E-1",
        "7.000000000000000000000",
    ] {
        let report = format!(r#"{{"prompt_tokens":{written},"completion_tokens":5}}"#);
        let usage = valid(&report);
        assert_eq!((usage.prompt, usage.doubtful), (Some(7), false), "{report}");
    }
    for written in ["-0", "0.0", "0e99999", "\"0\""] {
        let report = format!(r#"{{"prompt_tokens":{written}}}"#);
        assert_eq!(valid(&report).prompt, Some(0), "{report}");
    }
    for written in [
        "7.5",
        "-7",
        "\"\"",
        "\" 7\"",
        "\"7 tokens\"",
        "\"07\"",
        "\"7.\"",
        "\".7\"",
        "\"+7\"",
        "7e-1",
        "7e99999",
        "7.000000000000000000001",
        "true",
        "[7]",
    ] {
        let report = format!(r#"{{"prompt_tokens":{written},"completion_tokens":5}}"#);
        let usage = valid(&report);
        assert_eq!((usage.prompt, usage.doubtful), (None, true), "{report}");
    }
}

#[test]
fn what_a_cache_served_is_part_of_a_prompt_by_openais_name_and_beside_one_by_anthropics() {
    let both = r#""cache_creation_input_tokens":100,"cache_read_input_tokens":7"#;
    let openai = valid(&format!(
        r#"{{"prompt_tokens":110,"completion_tokens":1,"total_tokens":111,{both}}}"#
    ));
    let anthropic = valid(&format!(r#"{{"input_tokens":3,"output_tokens":1,{both}}}"#));
    for usage in [openai, anthropic] {
        assert_eq!(
            (usage.prompt, usage.cached, usage.cache_write_5m),
            (Some(110), Some(7), Some(100))
        );
        assert!(!usage.doubtful, "{usage:?}");
    }
}

#[test]
fn a_response_in_one_piece_reads_as_one_in_single_bytes() {
    let long = format!(
        r#"{{"usage":{{"x":"{}","total_tokens":3}}}}"#,
        "x".repeat(USAGE_LIMIT_BYTES)
    );
    for body in [
        r#"{"usage":{"prompt_tokens":7,"completion_tokens":12345678,"total_tokens":12345685}}"#,
        r#"{"usage":{"prompt_tokens":7},"usage":{"prompt_tokens":8}} "#,
        r#"{"usage":{"prompt_tokens":7},"usage":null}"#,
        r#"{"usage":{"prompt_tokens":7},"x":tru}"#,
        r#"{"usage":{"prompt_tokens":7}}x"#,
        r#"{"usage":{"prompt_tokens":07}}"#,
        r#"{"usage":{"prompt_tokens":7.0}}"#,
        r#"{"usage":{"prompt_tokens":7e1}}"#,
        r#"{"usage":{"prompt_tokens":-7}}"#,
        r#"{"usage":{"prompt_tokens" : 7 , "completion_tokens":0}}"#,
        r#"{"usage":{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}}"#,
        r#"{"usage":{"prompt_tokens":7,"prompt_tokens_details":[]}}"#,
        r#"{"usage":{"\ud800":1}}"#,
        r#"{"us\u0061ge":{"prompt_tokens":7}}"#,
        r#"{"usage":[{"prompt_tokens":7}]}"#,
        r#"{"usage":"7"}"#,
        r#"{"usage":{}}"#,
        r#"{"é":1,"usage":{"prompt_tokens":7}}"#,
        &long,
    ] {
        assert_eq!(unary(body, body.len()), unary(body, 1), "{body}");
        assert_eq!(unary(body, body.len() - 1), unary(body, 1), "{body}");
    }
}

fn valid(report: &str) -> Usage {
    match read(report.as_bytes()) {
        Reading::Valid(usage) => usage,
        other => panic!("{report}: {other:?}"),
    }
}

#[test]
fn reasoning_that_the_total_has_beside_the_completion_is_added_to_it() {
    for (report, completion, doubtful) in [
        // Beside: prompt + completion + reasoning is the total.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":315,"completion_tokens_details":{"reasoning_tokens":300}}"#,
            305,
            false,
        ),
        // Within.
        (
            r#"{"prompt_tokens":10,"completion_tokens":305,"total_tokens":315,"completion_tokens_details":{"reasoning_tokens":300}}"#,
            305,
            false,
        ),
        // Nobody can tell: more reasoning than completion, and a total that knows of neither.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":300}}"#,
            5,
            true,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":300}}"#,
            5,
            true,
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":316,"completion_tokens_details":{"reasoning_tokens":300}}"#,
            306,
            true,
        ),
        // What is beside both sums and not told of can be nothing else.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":315}"#,
            305,
            true,
        ),
        (
            r#"{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":25000}"#,
            24_000,
            true,
        ),
        // Of reasoning that is within the completion, nothing is beside it.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":99,"completion_tokens_details":{"reasoning_tokens":3}}"#,
            5,
            true,
        ),
        (
            r#"{"input_tokens":10,"output_tokens":5,"total_tokens":315,"output_tokens_details":{"reasoning_tokens":300}}"#,
            305,
            false,
        ),
    ] {
        let usage = valid(report);
        assert_eq!(
            (usage.completion, usage.doubtful),
            (Some(completion), doubtful),
            "{report}"
        );
    }
}

#[test]
fn cache_writes_are_parted_by_how_long_they_are_kept() {
    for (report, prompt, writes, doubtful) in [
        (
            r#"{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":7,"output_tokens":1}"#,
            110,
            (Some(100), None),
            false,
        ),
        (
            r#"{"input_tokens":3,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":40,"ephemeral_1h_input_tokens":60},"output_tokens":1}"#,
            103,
            (Some(40), Some(60)),
            false,
        ),
        (
            r#"{"input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":60},"output_tokens":1}"#,
            63,
            (Some(0), Some(60)),
            false,
        ),
        (
            r#"{"input_tokens":3,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":60},"output_tokens":1}"#,
            103,
            (Some(40), Some(60)),
            true,
        ),
        (
            r#"{"input_tokens":3,"cache_creation_input_tokens":0,"cache_creation":null,"output_tokens":1}"#,
            3,
            (Some(0), None),
            false,
        ),
    ] {
        let usage = valid(report);
        let found = (usage.cache_write_5m, usage.cache_write_1h);
        assert_eq!(
            (usage.prompt, found, usage.doubtful),
            (Some(prompt), writes, doubtful),
            "{report}"
        );
    }
    for report in [
        r#"{"input_tokens":3,"cache_creation":[]}"#,
        r#"{"input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":-1}}"#,
    ] {
        let usage = valid(report);
        assert_eq!((usage.prompt, usage.doubtful), (Some(3), true), "{report}");
    }
}

#[test]
fn audio_tokens_are_read_in_both_directions() {
    let usage = valid(
        r#"{"prompt_tokens":20,"completion_tokens":30,"total_tokens":50,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":15},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":25}}"#,
    );
    let audio = (usage.audio_prompt, usage.audio_completion);
    assert_eq!((audio, usage.doubtful), ((Some(15), Some(25)), false));
    assert_eq!((usage.cached, usage.reasoning), (Some(4), Some(0)));
    let beyond = valid(
        r#"{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"audio_tokens":21}}"#,
    );
    assert!(beyond.doubtful && beyond.audio_prompt.is_none());
}

#[test]
fn parts_that_some_providers_alone_have_are_parts_that_have_prices() {
    for (report, cached, written) in [
        // DeepSeek.
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
            Some(64),
            None,
        ),
        // Moonshot.
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"cached_tokens":64}"#,
            Some(64),
            None,
        ),
        // OpenRouter.
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":80}}"#,
            Some(10),
            Some(80),
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":65}}"#,
            Some(65),
            None,
        ),
    ] {
        let usage = valid(report);
        assert_eq!(
            (
                usage.prompt,
                usage.cached,
                usage.cache_write_5m,
                usage.doubtful
            ),
            (Some(100), cached, written, false),
            "{report}"
        );
    }
    let beyond = valid(
        r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":71}}"#,
    );
    assert_eq!((beyond.cached, beyond.cache_write_5m), (Some(30), None));
    assert!(beyond.doubtful);
}

/// What a stream with these reports, one an event, comes to.
fn reported(reports: &[&str]) -> Usage {
    let mut all = Report::read(reports[0].as_bytes());
    for later in &reports[1..] {
        all.take_later(&Report::read(later.as_bytes()));
    }
    let mut reading = Reading::Absent;
    all.judge(&mut reading);
    match reading {
        Reading::Valid(usage) => usage,
        other => panic!("{reports:?}: {other:?}"),
    }
}

#[test]
fn reports_of_one_stream_are_merged_member_by_member_before_they_are_judged() {
    // As an Anthropic-compatible provider reports a prompt of which its cache served the larger part: the whole in one
    // event, the part in another.
    let cached = reported(&[
        r#"{"input_tokens":3602}"#,
        r#"{"cache_creation_input_tokens":0,"cache_read_input_tokens":3604,"output_tokens":878}"#,
    ]);
    assert_eq!(
        (cached.prompt, cached.cached, cached.completion),
        (Some(7206), Some(3604), Some(878))
    );
    assert!(!cached.doubtful);
    let begun = r#"{"prompt_tokens":5,"completion_tokens":100,"total_tokens":105}"#;
    for then in [
        r#"{"prompt_tokens_details":{"cached_tokens":6}}"#,
        r#"{"total_tokens":2}"#,
        r#"{"prompt_tokens":-1}"#,
        r#"{"completion_tokens":1e30}"#,
        "[9]",
    ] {
        let kept = reported(&[begun, then]);
        assert_eq!(
            (kept.prompt, kept.completion),
            (Some(5), Some(100)),
            "{then}"
        );
        assert!(kept.doubtful && kept.cached.is_none(), "{then}");
    }
    let grown = reported(&[begun, r#"{"completion_tokens":200}"#]);
    assert_eq!(
        (grown.prompt, grown.completion, grown.total),
        (Some(5), Some(200), None)
    );
    assert!(!grown.doubtful, "a count that grows is no contradiction");
}

#[test]
fn what_is_said_later_of_cache_writes_takes_the_place_of_their_parts_and_of_their_sum() {
    let begun = r#"{"input_tokens":100,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200}}"#;
    for (then, prompt, cached, writes, doubtful) in [
        // It was read from the cache in the end: nothing was stored.
        (
            r#"{"cache_creation_input_tokens":0,"cache_read_input_tokens":300,"output_tokens":20}"#,
            400,
            Some(300),
            (Some(0), None),
            false,
        ),
        // The same sum, without its parts: these hold.
        (
            r#"{"cache_creation_input_tokens":300,"output_tokens":20}"#,
            400,
            None,
            (Some(100), Some(200)),
            false,
        ),
        // Parts without a sum.
        (
            r#"{"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":50},"output_tokens":20}"#,
            150,
            None,
            (Some(0), Some(50)),
            false,
        ),
        // A sum that has grown has the parts in it, and nobody says of what kind the rest is.
        (
            r#"{"cache_creation_input_tokens":350,"output_tokens":20}"#,
            450,
            None,
            (Some(150), Some(200)),
            true,
        ),
        // A sum that cannot be true says nothing of the parts.
        (
            r#"{"cache_creation_input_tokens":-1,"output_tokens":20}"#,
            400,
            None,
            (Some(100), Some(200)),
            true,
        ),
    ] {
        let usage = reported(&[begun, then]);
        let found = (usage.cache_write_5m, usage.cache_write_1h);
        assert_eq!(
            (usage.prompt, usage.cached, found, usage.doubtful),
            (Some(prompt), cached, writes, doubtful),
            "{then}"
        );
        assert_eq!(usage, reported(&[begun, then, begun, then]), "{then}");
    }
}

#[test]
fn what_google_has_beside_a_sum_is_part_of_it() {
    let usage = |report: &str| match super::read(report.as_bytes()) {
        Reading::Valid(usage) => usage,
        other => panic!("{report}: {other:?}"),
    };
    let all = usage(
        r#"{"promptTokenCount":12,"cachedContentTokenCount":4,"candidatesTokenCount":71,"toolUsePromptTokenCount":65,"thoughtsTokenCount":89,"totalTokenCount":237,"promptTokensDetails":[{"modality":"TEXT","tokenCount":12}]}"#,
    );
    assert_eq!((all.prompt, all.completion), (Some(77), Some(160)));
    assert_eq!((all.cached, all.reasoning), (Some(4), Some(89)));
    assert_eq!((all.total, all.doubtful), (Some(237), false));
    // All of the cap was thought, and counts of nothing are left out.
    let thought = usage(r#"{"promptTokenCount":3,"thoughtsTokenCount":60,"totalTokenCount":63}"#);
    assert_eq!((thought.prompt, thought.completion), (Some(3), Some(60)));
    assert!(!thought.doubtful);
    let blocked = usage(r#"{"promptTokenCount":3,"totalTokenCount":3}"#);
    assert_eq!((blocked.prompt, blocked.completion), (Some(3), None));
    // What cannot be true is added to nothing.
    let impossible = usage(
        r#"{"promptTokenCount":3,"candidatesTokenCount":-1,"thoughtsTokenCount":5,"totalTokenCount":9}"#,
    );
    assert_eq!(impossible.completion, None);
    assert!(impossible.doubtful);
    let begun = r#"{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":9,"thoughtsTokenCount":5}"#;
    let over = r#"{"promptTokenCount":3,"candidatesTokenCount":7,"totalTokenCount":15,"thoughtsTokenCount":5}"#;
    let merged = reported(&[begun, over]);
    assert_eq!((merged.prompt, merged.completion), (Some(3), Some(12)));
    assert_eq!((merged.total, merged.doubtful), (Some(15), false));
}

#[test]
fn a_document_in_two_dialects_reads_the_same_however_it_is_cut() {
    for body in [
        r#"{"usage":null,"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":7}}"#,
        r#"{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":7},"usage":null}"#,
        r#"{"usageMetadata":{"promptTokenCount":9},"usage":{"prompt_tokens":3,"completion_tokens":7}}"#,
        r#"{"usage":{"prompt_tokens":3,"completion_tokens":7},"usageMetadata":{"promptTokenCount":9}}"#,
    ] {
        let whole = unary(body, body.len());
        let Reading::Valid(usage) = whole else {
            panic!("{body}: {whole:?}")
        };
        assert_eq!(
            (usage.prompt, usage.completion),
            (Some(3), Some(7)),
            "{body}"
        );
        assert_eq!(unary(body, 1), whole, "{body}");
    }
}

#[test]
fn sound_is_read_out_of_a_list_by_what_tokens_are_of() {
    for (list, audio, doubtful) in [
        (
            r#"[{"modality":"TEXT","tokenCount":3},{"modality":"AUDIO","tokenCount":7}]"#,
            Some(7),
            false,
        ),
        (
            r#"[ { "tokenCount" : 7 , "modality" : "AUDIO" , "x" : [{}] } ]"#,
            Some(7),
            false,
        ),
        (r#"[{"modality":"TEXT","tokenCount":10}]"#, None, false),
        (r#"[{"modality":"AUDIO"}]"#, None, false),
        ("[]", None, false),
        ("[7]", None, false),
        ("null", None, false),
        // More than all of it, and no list.
        (r#"[{"modality":"AUDIO","tokenCount":11}]"#, None, true),
        (r#"[{"modality":"AUDIO","tokenCount":-1}]"#, None, true),
        ("{}", None, true),
    ] {
        let usage = valid(&format!(
            r#"{{"promptTokenCount":10,"candidatesTokenCount":10,"promptTokensDetails":{list},"candidatesTokensDetails":{list}}}"#
        ));
        assert_eq!(
            (usage.audio_prompt, usage.audio_completion, usage.doubtful),
            (audio, audio, doubtful),
            "{list}"
        );
    }
}

#[test]
fn what_amazon_reports_means_what_anthropic_does_and_has_its_writes_in_a_list() {
    let usage = valid(
        r#"{"inputTokens":7,"outputTokens":3,"totalTokens":1630,"cacheReadInputTokens":1500,"cacheWriteInputTokens":120,"cacheDetails":[{"inputTokens":100,"ttl":"1h"},{"inputTokens":20,"ttl":"5m"}]}"#,
    );
    assert_eq!(
        usage,
        Usage {
            prompt: Some(1627),
            completion: Some(3),
            total: Some(1630),
            cached: Some(1500),
            cache_write_5m: Some(20),
            cache_write_1h: Some(100),
            ..Usage::default()
        }
    );
    let whole = r#"{"output":{"message":{"role":"assistant","content":[{"text":"usage"}]}},"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":3,"totalTokens":10},"metrics":{"latencyMs":1}}"#;
    for step in [1, 7, whole.len()] {
        let Reading::Valid(usage) = unary(whole, step) else {
            panic!("valid")
        };
        assert_eq!((usage.prompt, usage.completion), (Some(7), Some(3)));
    }
    for (list, writes, doubtful) in [
        // What it does not part is kept five minutes.
        ("[]", [Some(12), None], false),
        ("null", [Some(12), None], false),
        (
            r#"[{"ttl":"1h","inputTokens":12}]"#,
            [Some(0), Some(12)],
            false,
        ),
        (
            r#" [ { "inputTokens" : 2 , "ttl" : "1h" } , {"ttl":"5m","inputTokens":10,"x":[{}]} ] "#,
            [Some(10), Some(2)],
            false,
        ),
        (
            r#"[{"ttl":"2d","inputTokens":12}]"#,
            [Some(12), None],
            false,
        ),
        (r#"[{"ttl":"1h"},7]"#, [Some(12), None], false),
        // More than their sum, none that can be true, and no list.
        (
            r#"[{"ttl":"1h","inputTokens":13}]"#,
            [Some(0), Some(13)],
            true,
        ),
        (r#"[{"ttl":"1h","inputTokens":-1}]"#, [Some(12), None], true),
        ("{}", [Some(12), None], true),
    ] {
        let usage = valid(&format!(
            r#"{{"inputTokens":10,"outputTokens":1,"cacheWriteInputTokens":12,"cacheDetails":{list}}}"#
        ));
        assert_eq!(
            ([usage.cache_write_5m, usage.cache_write_1h], usage.doubtful),
            (writes, doubtful),
            "{list}"
        );
    }
}

#[test]
fn goes_of_a_message_that_are_told_of_apart_are_added_up_in_place_of_its_sums() {
    let compacted = r#"{"input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":0,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500,"cache_read_input_tokens":70},{"type":"message","input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":0}]}"#;
    let advised = r#"{"iterations":[{"type":"message","input_tokens":412,"output_tokens":89}, {"type":"advisor_message","model":"another","input_tokens":200000,"output_tokens":1612} ,{"type":"message","input_tokens":1348,"output_tokens":442,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4}}],"input_tokens":412,"output_tokens":531}"#;
    let plain = r#"{"input_tokens":7,"output_tokens":5,"iterations":ITERATIONS}"#;
    let single = plain.replace(
        "ITERATIONS",
        r#"[{"type":"message","input_tokens":7,"output_tokens":5}]"#,
    );
    for (report, prompt, completion, doubtful) in [
        (compacted, 203_070, 4_500, false),
        (advised, 201_767, 2_143, true),
        (&single, 7, 5, false),
        (&plain.replace("ITERATIONS", "null"), 7, 5, false),
        (&plain.replace("ITERATIONS", "[]"), 7, 5, false),
        (
            &plain.replace("ITERATIONS", r#"[{"input_tokens":9}]"#),
            7,
            5,
            false,
        ),
    ] {
        let usage = valid(report);
        assert_eq!(
            (usage.prompt, usage.completion, usage.doubtful),
            (Some(prompt), Some(completion), doubtful),
            "{report}"
        );
    }
    let stream = reported(&[r#"{"input_tokens":23000,"output_tokens":1}"#, compacted]);
    assert_eq!(
        (stream.prompt, stream.completion),
        (Some(203_070), Some(4_500))
    );
    assert_eq!(stream.cached, Some(70));
    let writes = valid(advised);
    assert_eq!(
        (writes.cache_write_5m, writes.cache_write_1h),
        (Some(3), Some(4))
    );
}
