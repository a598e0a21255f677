//! A file that is replaced, in virtual time.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_file_that_is_replaced_is_read_again() {
    let directory = std::env::temp_dir().join(format!("callout-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("token");
    let source = SecretSource::file(path.clone());
    let given = || source.give().ok().map(|secret| secret.expose().to_vec());
    assert_eq!(given(), None);
    std::fs::write(&path, " one\n").expect("a file");
    assert_eq!(given(), None);
    tokio::time::advance(READ_AGAIN_AFTER).await;
    assert_eq!(given(), Some(b"one".to_vec()));
    std::fs::write(&path, "two").expect("a file");
    assert_eq!(given(), Some(b"one".to_vec()));
    tokio::time::advance(READ_AGAIN_AFTER).await;
    assert_eq!(given(), Some(b"two".to_vec()));
    for text in ["\n".to_owned(), "x".repeat(70_000)] {
        std::fs::write(&path, text).expect("a file");
        tokio::time::advance(READ_AGAIN_AFTER).await;
        assert_eq!(given(), None);
    }
    std::fs::remove_dir_all(&directory).expect("the directory");
}

#[test]
fn it_cannot_be_printed() {
    let source = SecretSource::fixed(Secret::new(b"word".to_vec()));
    assert!(!format!("{source:?}").contains("word"));
    assert_eq!(source.give().expect("a secret").expose(), b"word");
}
