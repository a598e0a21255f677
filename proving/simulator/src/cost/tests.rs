//! Costs by hand, and tables that are refused.

use super::*;

fn line() -> StepCost {
    StepCost {
        experts: None,
        overhead_ms: 1.0,
        prefill: PrefillCost {
            base_ms: 10.0,
            per_token_us: 20.0,
            per_pair_ns: 2.0,
        },
        decode: DecodeCost::Line {
            base_ms: 4.0,
            per_sequence_us: 50.0,
            per_context_token_ns: 100.0,
        },
    }
}

fn ms(cost: &StepCost, load: Load) -> f64 {
    cost.of(&load).as_secs_f64() * 1e3
}

const READ: Load = Load {
    prefills: 1,
    prefill_tokens: 1000,
    prefill_pairs: 500_000,
    decodes: 0,
    decode_context: 0,
    routed: 1000,
};

const WRITE: Load = Load {
    prefills: 0,
    prefill_tokens: 0,
    prefill_pairs: 0,
    decodes: 20,
    decode_context: 40_000,
    routed: 20,
};

#[test]
fn prefill_decode_and_mixed_steps() {
    let both = Load {
        decodes: WRITE.decodes,
        decode_context: WRITE.decode_context,
        ..READ
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    near(ms(&line(), READ), 1.0 + 10.0 + 20.0 + 1.0);
    near(ms(&line(), WRITE), 1.0 + 4.0 + 1.0 + 4.0);
    near(ms(&line(), both), 1.0 + 31.0 + 9.0 - 4.0);
    near(ms(&line(), Load::default()), 0.0);
}

#[test]
fn a_step_of_few_tokens_does_not_read_all_experts() {
    let experts = Experts {
        share: 0.5,
        chance: 0.25,
    };
    let cost = StepCost {
        experts: Some(experts),
        ..line()
    };
    let of = |routed| ms(&cost, Load { routed, ..WRITE });
    let unread = |routed| ms(&line(), WRITE) - of(routed);
    // Half of the base of 4 ms is the experts', and one token leaves three quarters of them alone.
    assert!((unread(1) - 4.0 * 0.5 * 0.75).abs() < 1e-6, "{}", unread(1));
    assert!((unread(2) - 4.0 * 0.5 * 0.75 * 0.75).abs() < 1e-6);
    assert!(unread(100) < 1e-6);
    assert!((1..40).all(|tokens| of(tokens) < of(tokens + 1)));
}

#[test]
fn a_table_gives_its_points_lines_between_and_lines_beyond() {
    let table = DecodeTable::new(
        vec![1.0, 8.0],
        vec![1000.0, 8000.0],
        vec![vec![3.0, 4.0], vec![5.0, 10.0]],
    )
    .unwrap();
    assert_eq!(table.ms(1.0, 1000.0), 3.0);
    assert_eq!(table.ms(8.0, 8000.0), 10.0);
    assert_eq!(table.ms(4.5, 1000.0), 4.0);
    assert_eq!(table.ms(4.5, 4500.0), 5.5);
    assert_eq!(table.ms(15.0, 1000.0), 7.0);
    assert_eq!(table.ms(1.0, 0.0), 3.0, "never below the smallest");
}

#[test]
fn a_faulty_table_is_refused_by_place() {
    let refused = |s: &[f64], c: &[f64], ms: &[&[f64]]| {
        let rows = ms.iter().map(|row| row.to_vec()).collect();
        DecodeTable::new(s.to_vec(), c.to_vec(), rows).unwrap_err()
    };
    let two: &[f64] = &[1.0, 2.0];
    assert!(refused(&[1.0], two, &[two]).starts_with("sequences"));
    assert!(refused(two, &[2.0, 2.0], &[two, two]).starts_with("contexts[1]"));
    assert!(refused(two, two, &[two]).starts_with("ms: has 1 rows"));
    assert!(refused(two, two, &[two, &[1.0]]).starts_with("ms[1]"));
    assert!(refused(two, two, &[two, &[1.0, 1.5]]).starts_with("ms[1][1]"));
    assert!(refused(two, two, &[two, &[1.0, f64::NAN]]).starts_with("ms[1][1]"));
}
