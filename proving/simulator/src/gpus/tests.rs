//! Figures that follow from steps.

use super::*;

fn four() -> Gpus {
    Gpus {
        count: 4,
        layers: 36,
        hidden: 2880,
        memory_mib: 81_559,
        weights_mib: 15_000,
        kv_mib: 50_000,
        idle_watts: 100.0,
        busy_watts: 700.0,
        ..Gpus::default()
    }
}

#[test]
fn a_token_costs_two_ring_all_reduces_in_each_layer() {
    assert_eq!(
        four().nvlink_bytes_per_token(),
        (2 * 36 * 2880 * 2) as f64 * 1.5
    );
    assert_eq!(Gpus::default().nvlink_bytes_per_token(), 0.0);
}

#[test]
fn figures_follow_from_the_steps() {
    let (gpus, mut activity) = (four(), Activity::default());
    activity.record(Duration::from_millis(300), 1000);
    activity.record(Duration::from_millis(200), 1000);
    let closed = activity.close(Duration::from_secs(1), &gpus);
    assert_eq!(closed.share(), 0.5);
    assert_eq!(closed.energy_mj, 400_000);
    assert_eq!(
        closed.nvlink_bytes_per_s(&gpus),
        2000.0 * gpus.nvlink_bytes_per_token()
    );
    let idle = activity.close(Duration::from_secs(1), &gpus);
    assert_eq!((idle.share(), idle.energy_mj), (0.0, 500_000));
    assert_eq!(idle.nvlink_bytes_per_s(&gpus), 0.0);
}
