//! Samples of an iteration.

use super::sampled;

#[test]
fn an_iteration_that_is_over_before_the_first_look_has_a_sample_all_the_same() {
    let mut samples = 0;
    sampled(|| {
        samples += 1;
        true
    });
    assert_eq!(samples, 1);
}
