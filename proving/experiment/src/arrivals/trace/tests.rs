//! Both forms, over midnights and with what can be wrong in them.

use super::*;

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r
2023-12-31 23:59:59.9799600,4808,10\r
2024-01-01 00:00:00.0319600,3180,8\r
2024-03-01 00:00:00.0000001,110,27";

const MOONCAKE: &str = r#"{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535.5, "input_length": 6472, "output_length": 26, "hash_ids": []}

{"timestamp": 30535.5, "input_length": 1, "output_length": 1, "type": "text"}
"#;

fn says(text: &str) -> String {
    Trace::parse("t", text).unwrap_err().to_string()
}

#[test]
fn azures_form_is_read_to_the_last_digit() {
    let trace = Trace::parse("azure.csv", AZURE).unwrap();
    let at: Vec<Duration> = trace.arrivals().iter().map(|a| a.at).collect();
    let days = 60 * 86_400;
    assert_eq!(
        at,
        [
            Duration::ZERO,
            Duration::from_millis(52),
            Duration::new(days, 20_040_100)
        ]
    );
    assert_eq!(trace.arrivals()[1].prompt_tokens, 3180);
    assert_eq!(trace.arrivals()[2].output_tokens, 27);
}

#[test]
fn mooncakes_form_is_read_with_its_blocks() {
    let trace = Trace::parse("mooncake.jsonl", MOONCAKE).unwrap();
    let last = &trace.arrivals()[2];
    assert_eq!(last.at, Duration::from_micros(3_053_500));
    assert_eq!(trace.arrivals()[0].blocks, [46, 47]);
    assert_eq!(trace.arrivals()[0].prompt_tokens, 6955);
    assert!((trace.rate().unwrap() - 2.0 / 3.0535).abs() < 1e-9);
}

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    let line = |text: &str| format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{text}\n");
    let good = "2023-11-16 18:17:03.9799600,1,1";
    assert!(says("").contains("t, line 1: the header"));
    assert!(says(good).contains("header"));
    assert!(says(&line("")).contains("no arrivals"));
    assert!(says(&line("2023-11-16 18:17:03.9799600,1")).contains("line 2: has not the three"));
    assert!(says(&line("2023-11-16 18:17:03.9799600,1,-1")).contains("\"-1\" is no number"));
    assert!(says(&line("2023-13-16 18:17:03.9799600,1,1")).contains("no moment"));
    assert!(says(&line("2023-11-16 18:17:03.,1,1")).contains("no moment"));
    let back = format!("{good}\n2023-11-16 18:17:03.9799599,1,1");
    assert!(says(&line(&back)).contains("line 3: comes before"));
    assert!(says("{\"timestamp\": 1, \"input_length\": 1}").contains("output_length"));
    let negative = "{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1}";
    assert!(says(negative).contains("-1 is no timestamp"));
}

#[test]
fn burstgpts_columns_are_read_by_their_names() {
    let six = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n\
               45.5,GPT-4,1087,0,1087,API log\n";
    let eight = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,a,1.5,ChatGPT,472,18,490,Conversation log\n45.5,b,0,GPT-4,1087,0,1087,API log\n";
    for text in [six, eight] {
        let trace = Trace::parse("burst", text).expect("a trace");
        let all: Vec<(f64, u32, u32)> = trace
            .arrivals()
            .iter()
            .map(|one| (one.at.as_secs_f64(), one.prompt_tokens, one.output_tokens))
            .collect();
        // One that failed was one token long.
        assert_eq!(all, [(0.0, 472, 18), (40.5, 1087, 1)]);
    }
    let broken = six.replace("1087,0", "many,0");
    let error = Trace::parse("burst", &broken).expect_err("no number");
    assert_eq!(
        error.to_string(),
        "burst, line 3: \"many\" is no number of tokens"
    );
}

#[test]
fn servegens_windows_are_drawn_by_their_laws_and_their_lengths() {
    // Ten minutes at 5/s, ten of silence, ten of bursts at 1/s, and what follows the last line is as long.
    let windows = "0,5.0,1.0,Exponential,0,0\n600,0,0,,0,0\n1200,1.0,2.0,Gamma,0.25,4.0\n1800,2.0,1.5,Weibull,0.7,0.395\n";
    let lengths = r#"{"0": {"input_tokens": "{10: 0.5, 30: 0.5}", "output_tokens": "{7: 1.0}"},
        "1200": {"input_tokens": "{100: 1.0}", "output_tokens": "{1: 0.25, 9: 0.75}"}, "1800": {"input_tokens": "{}", "output_tokens": "{}"}}"#;
    assert!(Trace::is_servegen(windows));
    let trace = Trace::servegen("client", windows, Some(lengths)).expect("a trace");
    assert_eq!(
        trace,
        Trace::servegen("again", windows, Some(lengths)).expect("the same")
    );
    // Moments count from the first arrival, which is within the first seconds.
    let of = |from: f64, to: f64| {
        let all = trace.arrivals().iter();
        all.filter(move |one| (from..to).contains(&one.at.as_secs_f64()))
            .collect::<Vec<_>>()
    };
    let (first, silence, bursts, last) = (
        of(0.0, 598.0),
        of(601.0, 1199.0),
        of(1200.0, 1799.0),
        of(1800.0, 2400.0),
    );
    assert!((2_600..=3_400).contains(&first.len()), "{}", first.len());
    assert!(silence.is_empty(), "{}", silence.len());
    assert!((350..=900).contains(&bursts.len()), "{}", bursts.len());
    assert!((900..=1_500).contains(&last.len()), "{}", last.len());
    let mean = |all: &[&Traced]| {
        all.iter()
            .map(|one| f64::from(one.prompt_tokens))
            .sum::<f64>()
            / all.len() as f64
    };
    assert!((mean(&first) - 20.0).abs() < 1.0, "{}", mean(&first));
    assert!(first.iter().all(|one| one.output_tokens == 7));
    assert!(
        bursts
            .iter()
            .all(|one| one.prompt_tokens == 100 && [1, 9].contains(&one.output_tokens))
    );
    // A window without lengths has those of the last that has some.
    assert!((mean(&last) - 100.0).abs() < 1e-9);
    // Arrivals are those of the windows alone, whatever their lengths.
    let alone = Trace::parse("client", windows).expect("a trace");
    assert!(
        alone
            .arrivals()
            .iter()
            .zip(trace.arrivals())
            .all(|(one, other)| one.at == other.at)
    );
    assert!(Trace::parse("client", "0,5.0,1.0,Pareto,0,0\n").is_err());
    let wrong = Trace::servegen("client", windows, Some("[]")).expect_err("no lengths");
    assert!(wrong.to_string().contains("its lengths"), "{wrong}");
    let back =
        Trace::servegen("client", "600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1\n", None).expect_err("back");
    assert!(
        back.to_string()
            .ends_with("line 2: comes before the line above it"),
        "{back}"
    );
}
