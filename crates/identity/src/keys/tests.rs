//! Keys that are made, written, read and brought.
//!
//! Not here: the file system (`tollgate`).

use policy::identity::{Unproven, Verifier};
use policy::model::ModelPattern;

use super::{
    BudgetPer, Entry, KeyFile, KeyTable, LimitOf, NewKey, Previous, WrittenBudget, WrittenLimit,
};

const NOW: u64 = 1_000_000;

fn entry(key: &NewKey) -> Entry {
    Entry {
        id: key.id.clone(),
        sha256: key.hash.to_string(),
        workload: "chat".to_owned(),
        created_unix_s: NOW,
        name: None,
        user: Some("ada".to_owned()),
        tags: [("team".to_owned(), "search".to_owned())].into(),
        models: vec!["gpt-*".to_owned()],
        limits: vec![WrittenLimit {
            of: LimitOf::Requests,
            amount: 60,
            per_s: 60,
        }],
        budgets: vec![WrittenBudget {
            unit: "USD".to_owned(),
            amount: "2.50".to_owned(),
            per: BudgetPer::Month,
        }],
        expires_unix_s: None,
        revoked_unix_s: None,
        previous: None,
    }
}

fn made() -> (NewKey, Entry) {
    let key = NewKey::make().expect("chance");
    let entry = entry(&key);
    (key, entry)
}

fn table(entries: Vec<Entry>) -> KeyTable {
    let text = KeyFile { entries }.text();
    KeyTable::new(&KeyFile::parse(text.as_bytes()).expect("what was written"))
}

fn why(table: &KeyTable, key: &[u8], now: u64) -> String {
    match table.verify(key, now) {
        Ok(proof) => format!("{} is let in", proof.caller.workload),
        Err(Unproven::Invalid(why) | Unproven::Unavailable(why)) => why.into_owned(),
        Err(other) => format!("{other:?}"),
    }
}

#[test]
fn a_key_that_was_made_is_its_owners() {
    let (key, entry) = made();
    let text = std::str::from_utf8(key.key.expose()).expect("text");
    assert_eq!(text.len(), 67);
    assert!(text.starts_with(&format!("tgk_{}_", key.id)), "{}", key.id);
    let table = table(vec![entry]);
    assert!(table.takes(key.key.expose()) && !table.takes(b"sk-something"));
    let proof = table.verify(key.key.expose(), NOW).expect("a good key");
    let caller = &proof.caller;
    assert_eq!(
        (&*caller.workload, caller.key.as_deref()),
        ("chat", Some(&*key.id))
    );
    assert_eq!(caller.user.as_deref(), Some("ada"));
    assert_eq!(caller.tags[..], [("team".into(), "search".into())]);
    assert_eq!(caller.models[..], [ModelPattern::Prefix("gpt-".into())]);
    assert_eq!(caller.limits[0].rate.amount, 60);
    assert_eq!(caller.budgets[0].amount, 2_500_000_000);
    assert_eq!(table.budgeted().len(), 1);
}

#[test]
fn the_file_and_debug_hold_no_secret() {
    let (key, entry) = made();
    let secret = String::from_utf8(key.key.expose()[15..].to_vec()).expect("text");
    let file = KeyFile {
        entries: vec![entry],
    };
    let shown = format!("{}{key:?}{:?}", file.text(), KeyTable::new(&file));
    assert!(!shown.contains(&secret));
}

#[test]
fn what_is_not_the_whole_key_proves_nothing() {
    let (key, entry) = made();
    let table = table(vec![entry]);
    let whole = key.key.expose().to_vec();
    assert!(table.verify(&whole, NOW).is_ok());
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at] = if other[at] == b'x' { b'y' } else { b'x' };
        assert!(table.verify(&other, NOW).is_err(), "byte {at}");
        assert!(table.verify(&whole[..at], NOW).is_err(), "cut at {at}");
    }
    let longer = [&whole[..], b"0"].concat();
    assert!(table.verify(&longer, NOW).is_err());
    let (other, _) = made();
    assert_eq!(
        why(&table, other.key.expose(), NOW),
        "there is no key of this id"
    );
}

#[test]
fn keys_end_when_they_expire_are_revoked_or_are_rotated_out() {
    let (key, mut entry) = made();
    let id = key.id.clone();
    entry.expires_unix_s = Some(NOW + 10);
    let expiring = table(vec![entry.clone()]);
    assert_eq!(why(&expiring, key.key.expose(), NOW + 9), "chat is let in");
    let expired = format!("the key {id} has expired");
    assert_eq!(why(&expiring, key.key.expose(), NOW + 10), expired);

    let next = NewKey::of_id(id.clone()).expect("chance");
    entry.expires_unix_s = None;
    entry.previous = Some(Previous {
        sha256: std::mem::replace(&mut entry.sha256, next.hash.to_string()),
        until_unix_s: NOW + 60,
    });
    let rotated = table(vec![entry.clone()]);
    for (key, now, says) in [
        (&next, NOW, "chat is let in".to_owned()),
        (&key, NOW + 59, "chat is let in".to_owned()),
        (&key, NOW + 60, format!("the key {id} was rotated out")),
        (&next, NOW + 60, "chat is let in".to_owned()),
    ] {
        assert_eq!(why(&rotated, key.key.expose(), now), says);
    }

    entry.revoked_unix_s = Some(NOW);
    let revoked = table(vec![entry]);
    for key in [&key, &next] {
        let says = format!("the key {id} is revoked");
        assert_eq!(why(&revoked, key.key.expose(), NOW), says);
    }
}

#[test]
fn a_file_that_cannot_be_trusted_lets_nobody_in() {
    let (key, _) = made();
    let table = KeyTable::unavailable("line 3: it is damaged");
    let said = table.verify(key.key.expose(), NOW);
    assert!(matches!(said, Err(Unproven::Unavailable(_))), "{said:?}");
}

#[test]
fn a_damaged_file_is_refused_whole_and_says_where() {
    let (_, first) = made();
    let (_, second) = made();
    let text = KeyFile {
        entries: vec![first.clone(), second],
    }
    .text();
    let lines = |with: &dyn Fn(&str) -> String| {
        let (one, two) = text.split_once('\n').expect("two lines");
        KeyFile::parse(format!("{one}\n{}", with(two)).as_bytes()).map(|file| file.entries.len())
    };
    assert_eq!(lines(&str::to_owned), Ok(2));
    type Damage = fn(&str) -> String;
    let damages: &[(&str, Damage)] = &[
        ("cut", |line| line[..line.len() / 2].to_owned()),
        ("no line break", |line| line.trim_end().to_owned()),
        ("zeros", |line| "\0".repeat(line.len()) + "\n"),
        ("a word", |line| line.replace("chat", "ch\u{7}at")),
        ("another member", |line| {
            line.replacen('{', r#"{"bound":1,"#, 1)
        }),
        ("a member twice", |line| {
            line.replacen('{', r#"{"workload":"x","#, 1)
        }),
        ("no hash", |line| line.replace("sha256", "sha255")),
        ("a short hash", |line| {
            line.replacen(r#""sha256":""#, r#""sha256":"0"#, 1)
        }),
        ("a number", |line| line.replace("1000000", "\"1000000\"")),
        ("a bad id", |line| {
            line.replacen(r#""id":""#, r#""id":"u"#, 1)
        }),
        ("no object", |_| "[]\n".to_owned()),
        ("a limit of nothing", |line| {
            line.replace("\"amount\":60", "\"amount\":0")
        }),
        ("a budget of what is not known", |line| {
            line.replace("USD", "usd")
        }),
        ("a budget that is rounded", |line| {
            line.replace("2.50", "2.5000000001")
        }),
    ];
    for (what, damage) in damages {
        let fault = lines(damage).expect_err(what);
        assert_eq!(fault.line, 2, "{what}: {fault}");
        assert!(!fault.to_string().contains(&first.sha256[..8]), "{fault}");
    }
    let twice = KeyFile {
        entries: vec![first.clone(), first],
    };
    let fault = KeyFile::parse(twice.text().as_bytes()).expect_err("one id twice");
    assert_eq!(fault.line, 2);
}

#[test]
fn no_bytes_make_it_panic() {
    let (_, entry) = made();
    let text = KeyFile {
        entries: vec![entry],
    }
    .text();
    for at in 0..text.len() {
        for with in [0, b'"', b'}', 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = with;
            // Whatever it says, it says it.
            let _read_or_refused = KeyFile::parse(&bytes);
        }
    }
}
