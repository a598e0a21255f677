//! Published numbers, means and spreads.

use super::*;

const SEED: u64 = 7;

fn moments(mut draw: impl FnMut(&mut Rng) -> f64) -> (f64, f64) {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let draws: Vec<f64> = (0..100_000).map(|_| draw(&mut rng)).collect();
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let spread = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
    (mean, spread.sqrt())
}

#[test]
fn the_numbers_are_the_published_ones() {
    // The first two of SplitMix64 from seed 1234567, as in the author's reference program.
    let mut rng = Rng::new(1_234_567);
    assert_eq!(rng.bits(), 6_457_827_717_110_365_317);
    assert_eq!(rng.bits(), 3_203_168_211_198_807_973);
}

#[test]
fn means_and_spreads_are_those_asked_for() {
    let near = |(mean, spread): (f64, f64), wanted: (f64, f64)| {
        assert!(
            (mean - wanted.0).abs() < 0.02 * wanted.0.max(1.0),
            "mean {mean}"
        );
        assert!(
            (spread - wanted.1).abs() < 0.03 * wanted.1.max(1.0),
            "spread {spread}"
        );
    };
    near(moments(Rng::unit), (0.5, 12_f64.sqrt().recip()));
    near(moments(|c| c.below(11) as f64), (5.0, 10_f64.sqrt()));
    near(moments(|c| c.exponential(3.0)), (3.0, 3.0));
    near(moments(Rng::normal), (0.0, 1.0));
    near(moments(|c| c.lognormal(400.0, 0.5)), (400.0, 200.0));
    near(moments(|c| c.gamma(4.0 / 9.0, 2.25)), (1.0, 1.5));
    near(moments(|c| c.gamma(9.0, 2.0)), (18.0, 6.0));
    assert_eq!(Rng::new(1).lognormal(5.0, 0.0), 5.0);
}

#[test]
fn every_name_has_a_stream_of_its_own() {
    let names: [&[u64]; 7] = [&[], &[0], &[1], &[0, 0], &[0, 1], &[1, 0], &[1, 0, 0]];
    let mut firsts: Vec<u64> = names
        .iter()
        .map(|name| Rng::stream(SEED, name).bits())
        .chain([Rng::stream(SEED + 1, &[0]).bits()])
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 8);
    assert_eq!(Rng::stream(SEED, &[3, 4]), Rng::stream(SEED, &[3, 4]));
}

#[test]
fn neighbouring_streams_are_not_correlated() {
    println!("seed {SEED}");
    let n = 20_000;
    let draw = |name: u64| -> Vec<f64> {
        (0..n)
            .map(|i| Rng::stream(SEED, &[name, i]).unit() - 0.5)
            .collect()
    };
    let (a, b) = (draw(1), draw(2));
    let product = a.iter().zip(&b).map(|(x, y)| x * y).sum::<f64>();
    let next = a.iter().zip(&a[1..]).map(|(x, y)| x * y).sum::<f64>();
    let band = 4.0 / 12.0 * (n as f64).sqrt();
    assert!(
        product.abs() < band && next.abs() < band,
        "{product} {next}"
    );
}
