//! What must hold for any bytes that claim to be a file of keys, a key, or the claims of a token.
//!
//! A file that is read is written back and read the same; of its keys nobody has one by knowing the file. A caller of
//! claims has texts within their bounds, whatever the claims say.
//! Not here: which keys are good (the tests of `identity`).

use identity::claims::{Mapping, Workload};
use identity::keys::{KeyFile, KeyTable};
use policy::caller::Proven;
use policy::identity::Verifier;
use serde_json::Value;

const NOW: u64 = 1_700_000_000;

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    match KeyFile::parse(input) {
        Ok(file) => {
            let text = file.text();
            assert_eq!(KeyFile::parse(text.as_bytes()).as_ref(), Ok(&file));
            let table = KeyTable::new(&file);
            assert_eq!(table.len(), file.entries.len());
            let other = KeyTable::parse(input).expect("as the file is read");
            assert_eq!(other.len(), table.len());
            for line in input.split(|byte| *byte == b'\n').take(64) {
                assert!(table.verify(line, NOW).is_err());
            }
            for entry in &file.entries {
                let guess = format!("tgk_{}_{}", entry.id, entry.sha256);
                assert!(table.verify(guess.as_bytes(), NOW).is_err());
            }
        }
        Err(fault) => {
            assert!(!fault.to_string().contains(char::is_control));
            assert_eq!(KeyTable::parse(input).err(), Some(fault));
        }
    }
    let none = KeyTable::new(&KeyFile::default());
    assert!(none.verify(input, NOW).is_err());
    if let Ok(Value::Object(claims)) = serde_json::from_slice(input) {
        let table = vec![
            ("chat".to_owned(), "chat".into()),
            ("ci".to_owned(), "ci".into()),
        ];
        for workload in [
            Workload::Fixed("chat".into()),
            Workload::Claim("azp".to_owned(), Vec::new()),
            Workload::Claim("groups.of".to_owned(), table),
        ] {
            let mapping = Mapping {
                workload,
                user: "sub".to_owned(),
                tags: vec![("team".to_owned(), "realm.roles".to_owned())],
            };
            let Ok(caller) = mapping.caller(&claims, Proven::Token) else {
                continue;
            };
            let texts = caller
                .user
                .iter()
                .chain(caller.tags.iter().map(|(_, value)| value));
            for text in texts {
                assert!((1..=256).contains(&text.len()));
                assert!(!text.contains(char::is_control));
            }
        }
    }
}
