//! The examples of W3C Trace Context, and what a caller may get wrong.

use super::{Sampling, Trace, put_span};

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ID: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

fn begin(traceparents: &[&str], sampling: Sampling) -> Trace {
    let mut next = 0;
    let fresh = || {
        next += 2;
        next
    };
    Trace::begin(traceparents.iter().map(|t| t.as_bytes()), sampling, fresh)
}

#[test]
fn a_callers_trace_is_continued_with_its_decision() {
    let none = Sampling::millionths(0);
    let all = Sampling::millionths(1_000_000);
    let sampled = begin(&[GIVEN], none);
    assert_eq!(
        (sampled.id, sampled.parent),
        (ID, Some(0x00f0_67aa_0ba9_02b7))
    );
    assert!(sampled.is_sampled);
    assert_ne!(Some(sampled.span), sampled.parent);
    let unsampled = begin(&[&GIVEN.replace("-01", "-00")], all);
    assert_eq!((unsampled.id, unsampled.is_sampled), (ID, false));
    // Other flags, and what a later version may add, are passed over.
    assert!(begin(&[&GIVEN.replace("-01", "-03")], none).is_sampled);
    assert_eq!(begin(&[&format!("cc{}-more", &GIVEN[2..])], none).id, ID);
}

#[test]
fn what_is_malformed_or_repeated_begins_a_new_trace() {
    let wrong = [
        "",
        "00",
        &GIVEN[..54],
        &format!("{GIVEN}0"),
        &format!("{GIVEN}-more"),
        &format!("cc{}more", &GIVEN[2..]),
        &format!("ff{}", &GIVEN[2..]),
        &GIVEN.to_uppercase(),
        &GIVEN.replace('-', "_"),
        &GIVEN.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        &GIVEN.replace("00f067aa0ba902b7", &"0".repeat(16)),
        &GIVEN.replace("-01", "-0g"),
        "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
    ];
    for given in wrong {
        let trace = begin(&[given], Sampling::millionths(1_000_000));
        assert_eq!(trace.parent, None, "{given}");
        assert!(
            trace.id != 0 && trace.id != ID && trace.span != 0,
            "{given}"
        );
    }
    assert_eq!(begin(&[GIVEN, GIVEN], Sampling::millionths(0)).parent, None);
}

#[test]
fn what_is_written_reads_as_it_was() {
    let trace = begin(&[GIVEN], Sampling::millionths(0));
    let mut out = trace.traceparent(0x00f0_67aa_0ba9_02b7);
    assert_eq!(std::str::from_utf8(&out).unwrap(), GIVEN);
    put_span(&mut out, 0, 0xfedc_ba98_7654_3210);
    assert_eq!(&out[36..52], b"fedcba9876543210");
    let silent = Trace {
        is_sampled: false,
        ..trace
    };
    assert_eq!(&silent.traceparent(1)[36..], b"0000000000000001-00");
}

#[test]
fn the_share_that_is_kept_is_the_share_asked_for() {
    let seed = testing::seed("the_share_that_is_kept_is_the_share_asked_for");
    for (millionths, expected) in [(0, 0.0), (1_000_000, 1.0), (100_000, 0.1), (500_000, 0.5)] {
        let mut draw = testing::Draw::new(seed);
        let mut fresh = || draw.next();
        let sampling = Sampling::millionths(millionths);
        let kept = (0..20_000)
            .filter(|_| Trace::begin(std::iter::empty(), sampling, &mut fresh).is_sampled)
            .count();
        let share = f64::from(u32::try_from(kept).unwrap()) / 20_000.0;
        // More than five standard deviations.
        assert!((share - expected).abs() < 0.02, "{millionths}: {share}");
    }
}
