//! Trajectories: copies agree, integrals and their inverse agree, and sojourns have their means.

use super::*;

const SEED: u64 = 11;

fn chain(scope: Scope, number: u64) -> Chain {
    let mmpp = Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap();
    Chain::new(SEED, scope, Actor { profile: 1, number }, mmpp)
}

#[test]
fn copies_agree_in_whatever_order_they_are_asked() {
    println!("seed {SEED}");
    let mut forward = chain(Scope::Profile, 0);
    let stays: Vec<Sojourn> = (0..500).map(|i| forward.seek(f64::from(i))).collect();
    let mut backward = chain(Scope::Profile, 7);
    for (i, stay) in stays.iter().enumerate().rev() {
        assert_eq!(backward.seek(i as f64), *stay);
    }
}

#[test]
fn a_scope_says_who_shares_a_trajectory() {
    println!("seed {SEED}");
    let stay = |scope, profile, number| {
        let mmpp = Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap();
        Chain::new(SEED, scope, Actor { profile, number }, mmpp).seek(100.0)
    };
    assert_ne!(stay(Scope::User, 1, 1), stay(Scope::User, 1, 2));
    assert_eq!(stay(Scope::Profile, 1, 1), stay(Scope::Profile, 1, 2));
    assert_ne!(stay(Scope::Profile, 1, 1), stay(Scope::Profile, 2, 1));
    assert_eq!(stay(Scope::Fleet, 1, 1), stay(Scope::Fleet, 2, 2));
}

#[test]
fn reach_is_the_inverse_of_the_integral() {
    println!("seed {SEED}");
    let mut chain = chain(Scope::User, 0);
    for (from, amount) in [(0.0, 0.3), (5.0, 17.0), (40.0, 900.0), (2.0, 1e-9)] {
        let at = chain.reach(from, amount);
        let back = chain.integral(from, at);
        assert!((back - amount).abs() < 1e-7, "{back} is not {amount}");
    }
}

#[test]
fn stays_and_occupancy_have_their_means() {
    println!("seed {SEED}");
    let mut chain = chain(Scope::User, 3);
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for _ in 0..20_000 {
        let stay = chain.advance();
        sums[usize::from(stay.on)] += stay.to_s - stay.from_s;
        counts[usize::from(stay.on)] += 1.0;
    }
    assert!((sums[1] / counts[1] - 2.0).abs() < 0.08);
    assert!((sums[0] / counts[0] - 10.0).abs() < 0.4);
    let span = 50_000.0;
    let (share, sd) = (
        chain.occupancy(span),
        chain.mmpp().occupancy_variance(span).sqrt(),
    );
    assert!((share - 1.0 / 6.0).abs() < 4.0 * sd, "{share} within {sd}");
}
