//! Not here: the wire form (`message`).

use super::*;

const OF: Of<'_> = Of {
    method: "POST",
    name: "/v1/chat/completions",
};

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second)
}

fn seen(second: u64, us: u64, error: Option<&str>) -> Seen<'_> {
    Seen {
        at: at(second),
        time: Some(Duration::from_micros(us)),
        bytes: 100,
        error,
    }
}

/// A linear congruence: the seed is the case.
fn some(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |last| {
        Some(
            last.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        )
    })
    .skip(1)
    .take(usize::try_from(count).expect("a small number"))
    .map(|number| number >> 33)
}

#[test]
fn a_time_is_kept_to_the_millisecond_below_a_second_and_to_three_digits_above() {
    let of = |us| bucket(us);
    assert_eq!(
        [of(0), of(499), of(500), of(1499), of(1500)],
        [0, 0, 1, 1, 2]
    );
    assert_eq!([of(147_000), of(999_499)], [147, 999]);
    assert_eq!(
        [of(999_500), of(1_004_999), of(1_005_000)],
        [1000, 1000, 1010]
    );
    assert_eq!([of(58_760_000), of(u64::MAX)], [58_800, 3_600_000]);
    let keys: std::collections::BTreeSet<u64> = (0..4_000_000).map(|ms| of(ms * 1000)).collect();
    assert!(keys.len() < 4200, "{}", keys.len());
}

#[test]
fn parts_are_entries_of_their_own_and_no_requests() {
    let mut tally = LocustStats::new(at(0));
    tally.request(OF, &seen(1, 2000, None));
    tally.part(OF, Part::Ttft, at(1), Duration::from_millis(1), 1);
    tally.part(OF, Part::Tpot, at(1), Duration::from_millis(3), 20);
    let told: Vec<(String, u64, u64)> = tally
        .entries()
        .map(|(name, _, counts)| (name, counts.requests, counts.sum_us))
        .collect();
    let name = OF.name;
    assert_eq!(
        told,
        [
            (name.to_owned(), 1, 2000),
            (format!("{name} TTFT"), 1, 1000),
            (format!("{name} TPOT"), 20, 60_000)
        ]
    );
    assert_eq!(tally.total().requests, 1);
}

#[test]
fn a_failure_without_a_time_is_counted_and_in_no_percentile() {
    let mut tally = LocustStats::new(at(0));
    let failure = Seen {
        time: None,
        ..seen(1, 0, Some("connect"))
    };
    tally.request(OF, &failure);
    let total = tally.total();
    assert_eq!((total.requests, total.failures, total.untimed), (1, 1, 1));
    assert!(total.times_ms.is_empty() && total.min_us.is_none());
    let errors: Vec<_> = tally
        .errors()
        .map(|(of, count)| (of.error.as_str(), count.count))
        .collect();
    assert_eq!(errors, [("connect", 1)]);
}

#[test]
fn tallies_put_together_are_the_tally_of_all() {
    for seed in 1..50 {
        println!("seed {seed}");
        let mut whole = LocustStats::new(at(0));
        let mut pieces = vec![
            LocustStats::new(at(0)),
            LocustStats::new(at(3)),
            LocustStats::new(at(6)),
        ];
        for number in some(seed, 200) {
            let name = format!("/{}", number % 5);
            let of = Of {
                method: ["GET", "POST"][number as usize % 2],
                name: &name,
            };
            let error = (number % 7 == 0).then_some("odd");
            let seen = seen(number % 9, number % 3_000_000, error);
            let index = number as usize % 3;
            for tally in [&mut whole, &mut pieces[index]] {
                tally.request(of, &seen);
                tally.part(
                    of,
                    Part::Tpot,
                    seen.at,
                    Duration::from_micros(number % 900),
                    number % 4,
                );
            }
        }
        let mut merged = LocustStats::new(at(9));
        for piece in pieces.into_iter().rev() {
            merged.merge(piece);
        }
        assert_eq!(merged, whole);
    }
}

#[test]
fn what_is_taken_is_not_there_any_more() {
    let mut tally = LocustStats::new(at(0));
    tally.request(OF, &seen(1, 10, None));
    let taken = tally.take(at(3));
    assert_eq!(taken.total().requests, 1);
    assert_eq!(tally, LocustStats::new(at(3)));
    let mut other = LocustStats::new(at(5));
    other.merge(tally);
    assert_eq!(
        other,
        LocustStats::new(at(5)),
        "an empty one adds nothing, not even its time"
    );
}

#[test]
fn past_every_bound_what_comes_is_counted_under_one_name() {
    let mut tally = LocustStats::new(at(0));
    for number in 0..1000 {
        let (name, error) = (format!("/{number}"), format!("error {number}"));
        let of = Of {
            method: "GET",
            name: &name,
        };
        tally.request(of, &seen(number, 10, Some(&error)));
    }
    assert_eq!(tally.total().requests, 1000);
    let entries: BTreeMap<String, u64> = tally
        .entries()
        .map(|(name, _, counts)| (name, counts.requests))
        .collect();
    assert_eq!(entries.len(), MOST_ENTRIES + 1);
    assert_eq!(entries[FURTHER], 800);
    assert_eq!(tally.errors().count(), MOST_ERRORS + 1);
    assert_eq!(
        tally.errors().map(|(_, error)| error.count).sum::<u64>(),
        1000
    );
    let per_second = &tally.total().per_second;
    assert_eq!(per_second.len(), MOST_SECONDS);
    assert_eq!(per_second.values().sum::<u64>(), 1000);
    let long = "é".repeat(1000);
    let mut tally = LocustStats::new(at(0));
    tally.request(
        Of {
            method: &long,
            name: &long,
        },
        &seen(0, 1, Some(&long)),
    );
    tally.request(
        Of {
            method: &long,
            name: &long,
        },
        &seen(0, 1, Some(&long)),
    );
    let (name, method, counts) = tally.entries().next().expect("an entry");
    assert_eq!((name.len(), method.len(), counts.requests), (512, 512, 2));
}
