//! Whose files and batches are, through a restart.

use std::sync::Arc;

use bytes::Bytes;
use policy::batch_store::{At, Away, BatchStore, Kind, Maker, NotKept, Owner, Page, Thing};
use policy::operation::Operation;
use policy::wire::batch::Api;

use super::Batches;

fn owner(workload: &str, issuer: Option<&str>) -> Owner {
    Owner {
        workload: workload.into(),
        issuer: issuer.map(Arc::from),
    }
}

fn thing(kind: Kind, id: &str, of: &Owner) -> Thing {
    Thing {
        backend: "openai".into(),
        api: Api::OpenAi,
        kind,
        id: id.into(),
        owner: of.clone(),
        maker: Maker {
            key: Some("k1".into()),
            user: None,
            tags: Box::new([("team".into(), "a\"b".into())]),
        },
        created_unix_ms: 1_700_000_000_000,
        calls: Box::new([(Operation::Chat, "m1".into())]),
        object: Bytes::from_static(b"{}"),
        is_unsettled: kind == Kind::Batch,
    }
}

fn at(kind: Kind, id: &str) -> At {
    At {
        backend: "openai".into(),
        kind,
        id: id.into(),
    }
}

fn page(limit: usize, after: Option<&str>, ascends: bool) -> Page {
    Page {
        limit,
        after: after.map(Box::from),
        before: None,
        ascends,
    }
}

#[tokio::test(flavor = "current_thread")]
async fn one_that_is_being_made_counts_is_found_by_nobody_and_is_not_there_after_a_crash() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let of = owner("a", None);
    let batches = Batches::open(&ledger).expect("opens");
    let new = || thing(Kind::Batch, "", &of);
    let begun = batches.begin(new()).await.expect("noted");
    let other = batches.begin(new()).await.expect("noted");
    assert_ne!(begun, other);
    assert_eq!(batches.unsettled_of("a".into()).await, Ok(2));
    assert_eq!(batches.stats().by_workload, [("a".into(), 2)]);
    assert_eq!(batches.find(of.clone(), begun.clone()).await, Ok(None));
    assert_eq!(batches.unsettled("openai".into(), 0).await, Ok(Vec::new()));
    let list = |at: &Batches| {
        at.page(
            of.clone(),
            "openai".into(),
            Kind::Batch,
            page(9, None, true),
        )
    };
    assert_eq!(list(&batches).await, Ok(Some((Vec::new(), false))));
    let made = thing(Kind::Batch, "batch_1", &of);
    assert_eq!(batches.made(begun, made.clone()).await, Ok(()));
    assert_eq!(list(&batches).await, Ok(Some((vec![made], false))));
    assert_eq!(batches.unsettled_of("a".into()).await, Ok(2));
    drop(batches);
    let batches = Batches::open(&ledger).expect("opens");
    assert_eq!(batches.unsettled_of("a".into()).await, Ok(1));
}

#[tokio::test(flavor = "current_thread")]
async fn an_id_is_its_owners_alone_and_outlives_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let (a, b) = (owner("a", None), owner("b", None));
    let elsewhere = owner("a", Some("https://issuer.example"));
    {
        let store = Batches::open(&ledger).expect("opens");
        let file = thing(Kind::File, "f1", &a);
        assert_eq!(store.keep(file.clone()).await, Ok(()));
        assert_eq!(store.keep(file).await, Ok(()), "again is the same");
        let taken = store.keep(thing(Kind::File, "f1", &b)).await;
        assert_eq!(taken, Err(NotKept::Taken));
        assert_eq!(store.keep(thing(Kind::Batch, "b1", &a)).await, Ok(()));
    }
    let store = Batches::open(&ledger).expect("opens again");
    let found = store.find(a.clone(), at(Kind::File, "f1")).await;
    assert_eq!(found, Ok(Some(thing(Kind::File, "f1", &a))));
    for other in [&b, &elsewhere] {
        let found = store.find(other.clone(), at(Kind::File, "f1")).await;
        assert_eq!(found, Ok(None), "{other:?}");
    }
    assert_eq!(store.find(a.clone(), at(Kind::Batch, "f1")).await, Ok(None));
    assert_eq!(store.unsettled_of("a".into()).await, Ok(1));
    let backends = store.unsettled_backends().await;
    assert_eq!(backends, Ok(vec!["openai".into()]));
    let batch = thing(Kind::Batch, "b1", &a);
    assert_eq!(store.unsettled("openai".into(), 0).await, Ok(vec![batch]));
    assert_eq!(store.unsettled("openai".into(), 1).await, Ok(Vec::new()));
    assert_eq!(store.unsettled("other".into(), 0).await, Ok(Vec::new()));
    assert_eq!(store.stats().by_workload, [("a".into(), 1)]);
    assert_eq!(store.settled(at(Kind::Batch, "b1")).await, Ok(()));
    assert_eq!(store.unsettled("openai".into(), 0).await, Ok(Vec::new()));
    assert_eq!(store.stats(), Default::default());
    assert_eq!(store.remove(at(Kind::File, "f1")).await, Ok(()));
    assert_eq!(store.find(a, at(Kind::File, "f1")).await, Ok(None));
}

#[tokio::test(flavor = "current_thread")]
async fn a_list_has_its_owners_own_page_by_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Batches::open(&dir.path().join("usage.db")).expect("opens");
    let (a, b) = (owner("a", None), owner("b", None));
    for nth in 0..5 {
        let of = if nth == 2 { &b } else { &a };
        let kept = store.keep(thing(Kind::File, &format!("f{nth}"), of)).await;
        assert_eq!(kept, Ok(()));
    }
    let asked = async |page: Page| {
        let found = store
            .page(a.clone(), "openai".into(), Kind::File, page)
            .await;
        let ids = |(things, more): (Vec<Thing>, bool)| {
            let ids: Vec<String> = things.iter().map(|t| t.id.to_string()).collect();
            (ids.join(","), more)
        };
        found.expect("an answer").map(ids)
    };
    let told = |ids: &str, more| Some((ids.to_owned(), more));
    assert_eq!(asked(page(2, None, false)).await, told("f4,f3", true));
    assert_eq!(
        asked(page(2, Some("f3"), false)).await,
        told("f1,f0", false)
    );
    assert_eq!(asked(page(9, None, true)).await, told("f0,f1,f3,f4", false));
    assert_eq!(asked(page(9, Some("f2"), true)).await, None, "another's");
    let before = Page {
        before: Some("f0".into()),
        ..page(2, None, false)
    };
    assert_eq!(asked(before).await, told("f3,f1", true));
}

#[tokio::test(flavor = "current_thread")]
async fn a_damaged_file_is_not_opened_and_a_ledger_that_is_not_there_is_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let store = Batches::open(&ledger).expect("opens");
    assert_eq!(store.on_disk(vec![[0; 16]]).await, Err(Away));
    let first = store.row(&thing(Kind::Batch, "b1", &owner("a", None)), "m1");
    let again = store.row(&thing(Kind::Batch, "b1", &owner("z", None)), "m1");
    let other = store.row(&thing(Kind::Batch, "b1", &owner("a", None)), "m2");
    assert!(first == again && first != other);
    drop(store);
    let bad = dir.path().join("bad.db.batches");
    std::fs::write(bad, [b'x'; 8192]).expect("written");
    Batches::open(&dir.path().join("bad.db")).expect_err("no database");
}

#[tokio::test(flavor = "current_thread")]
async fn an_older_answer_of_its_provider_does_not_take_a_batch_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Batches::open(&dir.path().join("usage.db")).expect("opens");
    let of = owner("a", None);
    assert_eq!(store.keep(thing(Kind::Batch, "b1", &of)).await, Ok(()));
    let over = Bytes::from_static(br#"{"id":"b1","status":"completed","output_file_id":"f9"}"#);
    let before = Bytes::from_static(br#"{"id":"b1","status":"in_progress"}"#);
    for told in [&before, &over, &before] {
        let told = store.told(at(Kind::Batch, "b1"), told.clone()).await;
        assert_eq!(told, Ok(()));
    }
    let found = store.find(of.clone(), at(Kind::Batch, "b1")).await;
    assert_eq!(found.expect("a disk").expect("a batch").object, over);
    let holds = store.holds(of, at(Kind::File, "f9")).await;
    assert_eq!(holds, Ok(Some(at(Kind::Batch, "b1"))));
}

#[tokio::test(flavor = "current_thread")]
async fn who_has_as_many_as_may_be_is_told_before_more_is_made_and_what_was_made_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let of = owner("a", None);
    let store = Batches::open(&ledger).expect("opens");
    assert_eq!(store.has_room("a".into()).await, Ok(true));
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
        INSERT INTO things (backend,api,kind,id,workload,created_unix_ms,tags,calls,object,unsettled) \
        SELECT 'openai','openai','file','x' || i,'a',1,'{}','',x'7b7d',0 FROM n";
    let db = rusqlite::Connection::open(crate::schema::beside(&ledger, super::SUFFIX));
    db.expect("a file").execute(fill, []).expect("rows");
    assert_eq!(store.has_room("a".into()).await, Ok(false));
    assert_eq!(store.has_room("b".into()).await, Ok(true));
    assert_eq!(store.keep(thing(Kind::Batch, "b1", &of)).await, Ok(()));
    assert_eq!(store.unsettled_of("a".into()).await, Ok(1));
    // A batch that was counted a month ago would go for another one.
    assert_eq!(store.settled(at(Kind::Batch, "b1")).await, Ok(()));
    assert_eq!(store.has_room("a".into()).await, Ok(true));
}

#[tokio::test(flavor = "current_thread")]
async fn files_of_calls_and_results_go_with_batches_that_were_counted_a_month_ago_and_others_stay()
{
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let of = owner("a", None);
    let store = Batches::open(&ledger).expect("opens");
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9997) \
        INSERT INTO things (backend,api,kind,id,workload,created_unix_ms,tags,calls,object,unsettled) \
        SELECT 'openai','openai','file','x' || i,'a',1,'{}','',x'7b7d',0 FROM n";
    let db = rusqlite::Connection::open(crate::schema::beside(&ledger, super::SUFFIX));
    db.expect("a file").execute(fill, []).expect("rows");
    let mut result = thing(Kind::File, "out", &of);
    result.calls = Box::default();
    result.object = Bytes::from_static(br#"{"id":"out","object":"file","purpose":"batch_output"}"#);
    for of in [
        thing(Kind::File, "in", &of),
        thing(Kind::Batch, "b", &of),
        result,
    ] {
        assert_eq!(store.keep(of).await, Ok(()));
    }
    let is_there = async |kind, id| {
        let found = store.find(of.clone(), at(kind, id)).await;
        found.expect("it answers").is_some()
    };
    // The input goes, the batch is not counted, and with it its result stays.
    assert_eq!(store.has_room("a".into()).await, Ok(true));
    let new = Thing {
        created_unix_ms: LATER,
        ..thing(Kind::File, "new", &of)
    };
    assert_eq!(store.keep(new).await, Ok(()));
    assert!(!is_there(Kind::File, "in").await);
    assert_eq!(store.remove(at(Kind::File, "new")).await, Ok(()));
    assert_eq!(store.keep(plain(&of, "y1")).await, Ok(()));
    assert_eq!(store.has_room("a".into()).await, Ok(false));
    assert_eq!(store.settled(at(Kind::Batch, "b")).await, Ok(()));
    for id in ["y2", "y3"] {
        assert_eq!(store.has_room("a".into()).await, Ok(true));
        assert_eq!(store.keep(plain(&of, id)).await, Ok(()));
    }
    assert!(!is_there(Kind::Batch, "b").await && !is_there(Kind::File, "out").await);
    assert!(is_there(Kind::File, "x1").await && is_there(Kind::File, "y1").await);
    assert_eq!(store.has_room("a".into()).await, Ok(false));
}

/// More than a month behind what is kept already.
const LATER: u64 = 1_800_000_000_000;

/// A file to be read.
fn plain(of: &Owner, id: &str) -> Thing {
    Thing {
        created_unix_ms: LATER,
        calls: Box::default(),
        ..thing(Kind::File, id, of)
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_batch_that_is_given_up_is_told_of_until_its_row_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let of = owner("a", None);
    let store = Batches::open(&ledger).expect("opens");
    for id in ["b1", "b2"] {
        assert_eq!(store.keep(thing(Kind::Batch, id, &of)).await, Ok(()));
    }
    assert_eq!(store.given_up().await, Ok(Vec::new()));
    let is_due = |id| store.is_due(at(Kind::Batch, id));
    assert_eq!(is_due("b1").await, Ok(true));
    let refused = super::give_up(&ledger, "b3", None, ("ada", "gone"));
    assert!(refused.is_err_and(|says| says.contains("no batch \"b3\"")));
    let noted = super::give_up(&ledger, "b1", Some("openai"), ("ada", "it forgot it"));
    let noted = noted.expect("there is one");
    assert_eq!((&*noted.who, &*noted.why), ("ada", "it forgot it"));
    assert_eq!(store.given_up().await, Ok(vec![noted.clone()]));
    assert_eq!(is_due("b1").await, Ok(false));
    assert_eq!(store.settled(noted.thing.at()).await, Ok(()));
    // It may be asked of one that is charged or given up already.
    for (id, due) in [("b1", false), ("b2", true), ("b3", false)] {
        assert_eq!(is_due(id).await, Ok(due), "{id}");
    }
    assert_eq!(store.given_up().await, Ok(Vec::new()));
    assert_eq!(store.unsettled_of("a".into()).await, Ok(1));
}
