//! A mirror sees its share.

use super::*;

#[test]
fn a_mirror_sees_its_share_of_calls_and_spreads_them_by_weight() {
    use crate::fixture::{RoutePlan, snapshot};
    const TWO: crate::fixture::BackendPlan<'static> = crate::fixture::BackendPlan {
        name: "two",
        weights: &[1, 3],
        ..crate::fixture::ONE
    };
    let s = snapshot(&[RoutePlan {
        workloads: &["a"],
        backends: &[TWO],
        ..RoutePlan::default()
    }]);
    let backend = crate::id::BackendId(0);
    let share = |millionths| Mirror {
        backend,
        millionths,
    };
    let mut draw = testing::Draw::new(testing::seed("a_mirror_sees_its_share"));
    let (mut seen, mut heavy) = (0, 0);
    for _ in 0..10_000 {
        let chance = draw.next();
        assert_eq!(pick(&share(0), chance, &s), None);
        assert!(pick(&share(1_000_000), chance, &s).is_some());
        if let Some(endpoint) = pick(&share(250_000), chance, &s) {
            seen += 1;
            heavy += u32::from(endpoint == EndpointId(1));
        }
    }
    // Five standard deviations.
    assert!((2_283..2_717).contains(&seen), "{seen}");
    assert!(heavy > seen / 2, "{heavy} of {seen}");
}
