//! Fits to recordings of real engines, where they lie beside the checkout.

use std::path::{Path, PathBuf};

use simulator::fit::fit;
use simulator::replay::{Setup, replay};
use simulator::score::{Score, Share};

use crate::files;

fn half(text: &str) -> Share {
    text.parse().expect("a share")
}

/// Recordings of real engines, where they lie beside the checkout (or where `TOLLGATE_SHARED` says).
fn recordings() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("TOLLGATE_SHARED").map_or(beside, PathBuf::from);
    let at = shared.join("data/vllm-traces");
    ["RTX4090/Llama-3.1-8B", "RTXPRO6000/Qwen3-32B"]
        .iter()
        .map(|name| at.join(name))
        .filter(|dir| dir.is_dir())
        .collect()
}

#[test]
fn fitted_to_the_first_half_of_a_real_run_the_second_half_comes_out_near() {
    for dir in recordings() {
        let trace = files::trace(&dir).unwrap();
        let fitted = fit(
            &trace,
            &Setup::of(&trace, None, None),
            half("0..0.5"),
            &mut |_| {},
        )
        .unwrap();
        let replayed = replay(&trace, &fitted.setup, fitted.cost, |_| {}).unwrap();
        let score = Score::of(&trace, &replayed, half("0.5..1")).unwrap();
        for ((measure, compared), most) in score.measures().into_iter().zip([0.1, 0.05, 0.05]) {
            let (_, error) = compared.errors()[0];
            println!("{}: {measure} {error:+.3}", dir.display());
            assert!(
                error.abs() < most,
                "{}: mean {measure} is off by {error}",
                dir.display()
            );
        }
        let saturated = trace
            .timeseries
            .iter()
            .any(|sample| sample.kv_percent > 99.0);
        assert_eq!(
            replayed.preemptions > 0,
            saturated,
            "{} KV blocks",
            fitted.setup.blocks.count
        );
    }
}
