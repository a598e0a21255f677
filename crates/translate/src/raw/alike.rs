//! Two readers of one document: where the quick one says anything, it says what the one by name and kind does.
//!
//! Not here: the documents (the tests of each dialect).

/// A reader of a document, which shows what it read.
pub(crate) type Shows = fn(&str) -> Option<String>;

/// Checks the usual documents, which the quick one reads, and what is near to them; of the rare ones it reads none.
pub(crate) fn check(quick: Shows, slow: Shows, usual: &[&str], rare: &[&str]) {
    let reads = |json: &str| {
        let read = quick(json);
        if read.is_some() {
            assert_eq!(read, slow(json), "{json}");
        }
        read.is_some()
    };
    for json in usual {
        assert!(reads(json), "{json}");
        reads(&json.replace(':', ": ").replace(',', ",\n "));
        // Cut anywhere, with a byte too many or with another one, both say the same of it.
        for at in 0..json.len() {
            reads(&json[..at]);
            for other in ["\"", "}", "0", "null", "\\", ","] {
                reads(&[&json[..at], other, &json[at..]].concat());
                reads(&[&json[..at], other, &json[at + 1..]].concat());
            }
        }
    }
    for json in rare {
        assert!(!reads(json), "{json}");
    }
}
