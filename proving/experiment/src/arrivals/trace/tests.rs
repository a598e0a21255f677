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
