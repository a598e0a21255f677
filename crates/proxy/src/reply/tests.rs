//! Durations and headers as clients read them.

use super::*;

#[test]
fn durations_read_as_openai_writes_them() {
    let text = |ms| {
        let mut out = Text::default();
        go_duration(Duration::from_millis(ms), &mut out);
        String::from_utf8(out.as_slice().to_vec()).expect("ascii")
    };
    assert_eq!(text(0), "0ms");
    assert_eq!(text(20), "20ms");
    assert_eq!(text(1500), "1.5s");
    assert_eq!(text(360_000), "6m0s");
    assert_eq!(text(3_600_000), "1h0m0s");
    assert_eq!(text(999), "999ms");
    assert_eq!(text(1_007), "1.007s");
    assert_eq!(text(60_050), "1m0.05s");
    assert_eq!(text(u64::MAX), "5124095576030h25m51.615s");
}

#[test]
fn decimals_are_whole() {
    let text = |n| {
        let mut out = Vec::new();
        decimal(n, &mut out);
        String::from_utf8(out).expect("ascii")
    };
    assert_eq!(text(0), "0");
    assert_eq!(text(u64::MAX), u64::MAX.to_string());
}
