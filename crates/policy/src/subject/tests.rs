//! Who is counted as whom.

use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::caller::Claims;

fn caller(key: Option<&str>, user: Option<&str>) -> Arc<Caller> {
    Arc::new(Caller {
        key: key.map(Arc::from),
        user: user.map(Arc::from),
        ..Caller::default()
    })
}

fn hash(seed: Seed, whose: Whose, who: Who<'_>) -> u64 {
    seed.of(7, whose, &who, &Subjects::default())
}

#[test]
fn one_name_at_two_issuers_is_two_users_and_a_key_is_one_whoever_brings_it() {
    let seed = Seed([1, 2]);
    let of = |user: Option<&str>, issuer: Option<&str>| {
        let caller = Caller {
            claims: issuer.map(Claims::of_issuer).unwrap_or_default(),
            ..(*caller(Some("k"), user)).clone()
        };
        let caller = Arc::new(caller);
        let who = Who {
            workload: "w",
            caller: Some(&caller),
        };
        [Whose::Key, Whose::User].map(|whose| hash(seed, whose, who))
    };
    let issuers = [None, Some(""), Some("https://a"), Some("https://b")];
    let users: HashSet<u64> = issuers.map(|issuer| of(Some("ada"), issuer)[1]).into();
    assert_eq!(users.len(), 4);
    let keys: HashSet<u64> = issuers.map(|issuer| of(Some("ada"), issuer)[0]).into();
    assert_eq!(keys.len(), 1);
    let nobody: HashSet<u64> = issuers.map(|issuer| of(None, issuer)[1]).into();
    assert_eq!(
        nobody.len(),
        1,
        "those without a user are one, whoever issued their tokens"
    );
}

#[test]
fn keys_and_users_are_told_apart_and_those_without_are_one() {
    let seed = Seed([1, 2]);
    let callers = [
        caller(Some("a"), None),
        caller(Some("b"), None),
        caller(None, Some("a")),
        caller(Some("a"), Some("b")),
        caller(Some(""), Some("")),
    ];
    let mut seen = HashSet::new();
    for workload in ["w", "v", "wa"] {
        let who = |caller| Who { workload, caller };
        for caller in &callers {
            for whose in [Whose::Key, Whose::User] {
                seen.insert(hash(seed, whose, who(Some(caller))));
            }
        }
        // Without a key, and without a user: as if nobody were known.
        let [key, user] = [Whose::Key, Whose::User].map(|whose| hash(seed, whose, who(None)));
        assert_eq!(hash(seed, Whose::Key, who(Some(&callers[2]))), key);
        assert_eq!(hash(seed, Whose::User, who(Some(&callers[0]))), user);
        assert_ne!(key, user);
    }
    // Of each workload keys a, b, "" and none, users a, b, "" and none.
    assert_eq!(seen.len(), 3 * 8);
    assert_ne!(
        hash(
            seed,
            Whose::Key,
            Who {
                workload: "w",
                caller: None
            }
        ),
        hash(
            Seed([1, 3]),
            Whose::Key,
            Who {
                workload: "w",
                caller: None
            }
        ),
    );
}

#[test]
fn users_of_a_workload_are_a_crowd_and_keys_and_those_without_are_none() {
    let seed = Seed([1, 2]);
    let crowd = |whose, workload, caller: Option<&Arc<Caller>>| {
        let who = Who { workload, caller };
        Crowd::in_hash(seed.placed(7, whose, &who, &Subjects::default()))
    };
    let [ada, bob] = ["ada", "bob"].map(|user| caller(Some("k"), Some(user)));
    let of_ada = crowd(Whose::User, "w", Some(&ada));
    assert!(of_ada.is_some());
    assert_eq!(crowd(Whose::User, "w", Some(&bob)), of_ada);
    assert_ne!(crowd(Whose::User, "v", Some(&ada)), of_ada);
    assert_eq!(crowd(Whose::Key, "w", Some(&ada)), None);
    for whose in [Whose::Workload, Whose::Key, Whose::User] {
        assert_eq!(crowd(whose, "w", None), None);
    }
    // It is put into the hash, and takes nothing of it that tells users apart.
    let who = |caller| Who {
        workload: "w",
        caller: Some(caller),
    };
    let placed = |caller| seed.placed(7, Whose::User, &who(caller), &Subjects::default());
    assert_ne!(placed(&ada) << 8, placed(&bob) << 8);
}

#[test]
fn who_holds_an_amount_is_said_as_it_is() {
    let (both, user, none) = (
        caller(Some("k"), Some("u")),
        caller(None, Some("u")),
        caller(None, None),
    );
    let rows = [
        (
            Some(&both),
            [Holder::Workload, Holder::Key, Holder::User],
            Whose::Key,
        ),
        (
            Some(&user),
            [Holder::Workload, Holder::Keyless, Holder::User],
            Whose::User,
        ),
        (
            Some(&none),
            [Holder::Workload, Holder::Keyless, Holder::Userless],
            Whose::Key,
        ),
        (
            None,
            [Holder::Workload, Holder::Keyless, Holder::Userless],
            Whose::Key,
        ),
    ];
    for (caller, holders, own) in rows {
        let who = Who {
            workload: "w",
            caller,
        };
        let all = [Whose::Workload, Whose::Key, Whose::User];
        assert_eq!(all.map(|whose| who.holder(whose)), holders);
        assert_eq!(who.own(), own);
    }
}

#[test]
fn a_rule_is_told_by_all_that_makes_it_another_and_not_by_its_amount() {
    let seed = Seed([5, 6]);
    let rate = |amount, secs| Rate {
        amount,
        per: Duration::from_secs(secs),
        burst: amount,
    };
    assert_eq!(seed.limit("a", rate(1, 60)), seed.limit("a", rate(9, 60)));
    let rules = [
        seed.limit("a", rate(1, 60)),
        seed.limit("b", rate(1, 60)),
        seed.limit("a", rate(1, 61)),
        seed.own_limit(Kind::Requests, rate(1, 60)),
        seed.own_limit(Kind::Tokens, rate(1, 60)),
        seed.budget("a", 0),
        seed.budget("a", 1),
    ];
    assert_eq!(HashSet::from(rules).len(), rules.len());
}
