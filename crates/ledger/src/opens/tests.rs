//! What is open is known, or may be.

use rusqlite::Connection;

use super::{OPENS_MAX, Opens};
use crate::id::RecordId;

fn id(n: usize) -> RecordId {
    RecordId((n as u128).to_be_bytes())
}

fn file(open: usize) -> Connection {
    let db = Connection::open_in_memory().expect("opens");
    db.execute_batch("CREATE TABLE open (id BLOB PRIMARY KEY)")
        .expect("makes a table");
    for n in 0..open {
        db.execute("INSERT INTO open VALUES (?1)", [id(n).0])
            .expect("inserts");
    }
    db
}

#[test]
fn until_the_file_was_asked_everything_may_be_open() {
    let mut opens = Opens::default();
    opens.add(id(7));
    opens.remove(id(7));
    assert!(opens.may_have(id(7)) && opens.may_have(id(1)));
    opens.read(&file(3)).expect("reads");
    assert!((0..3).all(|n| opens.may_have(id(n))));
    assert!(!opens.may_have(id(3)));
}

#[test]
fn what_was_opened_and_closed_since_is_known() {
    let mut opens = Opens::default();
    let db = file(1);
    opens.read(&db).expect("reads");
    opens.add(id(5));
    opens.remove(id(0));
    // It is asked once.
    opens.read(&db).expect("reads");
    assert!(opens.may_have(id(5)) && !opens.may_have(id(0)));
}

#[test]
fn where_more_is_open_than_is_kept_everything_may_be() {
    let mut opens = Opens::default();
    opens.read(&file(0)).expect("reads");
    (0..OPENS_MAX).for_each(|n| opens.add(id(n)));
    assert!(!opens.may_have(id(OPENS_MAX)));
    opens.add(id(OPENS_MAX));
    assert!(opens.may_have(id(OPENS_MAX + 1)));
}
