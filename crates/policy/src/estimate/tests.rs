//! What is estimated, and that nothing absurd spoils it.

use super::Estimator;

#[test]
fn an_unlearned_estimate_is_a_quarter_token_a_byte_and_never_zero() {
    let fresh = Estimator::default();
    assert_eq!(fresh.prompt(0), 1);
    assert_eq!(fresh.prompt(1), 1);
    assert_eq!(fresh.prompt(4096), 1024);
    assert_eq!(fresh.prompt(32 << 20), 8 << 20);
}

#[test]
fn the_cap_of_a_call_counts_for_each_choice() {
    let fresh = Estimator::default();
    assert_eq!(fresh.completion(Some(100), 1), 100);
    assert_eq!(fresh.completion(Some(100), 3), 300);
    assert_eq!(fresh.completion(Some(100), 0), 100);
    assert_eq!(fresh.completion(Some(0), 1), 0);
    assert_eq!(fresh.completion(None, 2), 512);
    let most = u64::from(u32::MAX);
    assert_eq!(fresh.completion(Some(most), most), most * most);
}

#[test]
fn prompts_of_another_density_are_learned() {
    let mut learned = Estimator::default();
    for _ in 0..200 {
        learned.learn(1000, Some(500), None);
    }
    assert!((490..=510).contains(&learned.prompt(1000)));
    assert_eq!(learned.completion(None, 1), 256, "no completion was seen");
}

#[test]
fn completions_settle_near_the_ninth_decile() {
    let mut learned = Estimator::default();
    let mut sum = 0;
    for n in 0..20_000_u64 {
        // 617 and 1000 share no factor: every residue comes equally often, out of order.
        learned.learn(0, None, Some((n * 617) % 1000));
        if n >= 19_000 {
            sum += learned.completion(None, 1);
        }
    }
    let mean = sum / 1000;
    assert!((850..=950).contains(&mean), "{mean}");
}

#[test]
fn absurd_samples_leave_a_usable_estimate() {
    let mut learned = Estimator::default();
    for _ in 0..1000 {
        learned.learn(1, Some(u64::MAX), Some(0));
    }
    assert!(learned.prompt(1000) <= 2000);
    assert!(learned.completion(None, 1) >= 1);
    for _ in 0..1000 {
        learned.learn(u64::MAX, Some(0), None);
    }
    assert!(learned.prompt(1000) >= 10);
}

#[test]
fn whole_numbers_up_are_what_the_standard_library_says() {
    for nth in 0..4_000_000_u32 {
        let estimate = f32::from_bits(nth * 330);
        assert_eq!(super::whole(estimate), estimate.ceil() as u64, "{estimate}");
    }
    for count in [0, 1, 1 << 24, (1 << 31) - 1, 1 << 31, u64::MAX] {
        assert_eq!(super::float(count), count as f32);
    }
}
